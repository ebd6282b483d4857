# `aplc sections`: the search for the tile of a product with a constant matrix, on tests/sparse_plans.
# Run as: cmake -DAPLC=... -DPROGRAMS=... -DFOLDER=... -P sections_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${PROGRAMS}/a.mtx" DESTINATION "${FOLDER}")
set(ENV{XDG_CACHE_HOME} "${FOLDER}/cache")
file(WRITE "${FOLDER}/known.fut" "#[sparse(A)] #[constant(A)]
entry product [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A
")

set(FOLDER_OF_RUNS "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/run_aplc.cmake")

foreach(width 1 32)
  set(rows "")
  foreach(row RANGE 1 20)
    string(REPEAT "${row}.5f32, " ${width} numbers)
    string(APPEND rows "[${numbers}], ")
  endforeach()
  string(REPLACE ", ]" "]" rows "${rows}")
  string(REGEX REPLACE ", $" "" rows "${rows}")
  set(b_${width} "B=[${rows}]")
endforeach()
set(search sections known.fut A=@a.mtx --runs 3)

# The number of the log's lines that match.
function(count_lines text wanted)
  file(STRINGS "${FOLDER}/found.log" lines REGEX "${text}")
  list(LENGTH lines count)
  if(NOT count EQUAL wanted)
    message(FATAL_ERROR "${count} lines `${text}` in the log, not ${wanted}")
  endif()
endfunction()

# Twenty-one tiles of M1 rows with N1 = 1; proxies on three threads, then every kernel. Ranks are a permutation.
aplc(0 ${search} ${b_1} --log found.log --jobs 3 --exhaustive --svg ranks.svg -o found.tuning)
want("rows +columns +pieces +proxy us +kernel us +rank")
want("Spearman -?[01]\\.[0-9]+; the chosen tile takes [0-9.]+ of the best's time")
want("constant [0-9.]+ us, sparse [0-9.]+ us, dense [0-9.]+ us")
string(REGEX MATCHALL " 1 +[124] +[0-9.]+ +[0-9.]+ +[0-9]+\n" tiles "${output}")
list(LENGTH tiles count)
if(NOT count EQUAL 21)
  message(FATAL_ERROR "${count} tiles, not 21:\n${output}")
endif()
if(NOT output MATCHES " 1\n")
  message(FATAL_ERROR "no kernel is the fastest:\n${output}")
endif()
count_lines("^proxy-auto-cut@[0-9a-f]+-1-c " 21)
count_lines("^constant@[0-9a-f]+-1-c " 21)
file(READ "${FOLDER}/ranks.svg" svg)
string(REGEX MATCHALL "<circle" circles "${svg}")
list(LENGTH circles count)
if(NOT count EQUAL 21)
  message(FATAL_ERROR "${count} circles, not 21")
endif()

# What is in the log is not measured again, but times of another width are not this one's.
set(found "${output}")
file(READ "${FOLDER}/found.log" log)
aplc(0 ${search} ${b_1} --log found.log --exhaustive)
string(REGEX REPLACE "proxies: [^\n]*\n" "" found "${found}")
string(REGEX REPLACE "proxies: [^\n]*\n" "" again "${output}")
if(NOT again STREQUAL found)
  message(FATAL_ERROR "the log gives\n${again}not\n${found}")
endif()
want("proxies: 0.0 s; with the kernels that were compiled: 0.0 s")
aplc(0 ${search} ${b_32} --log found.log --no-final --clusters 2 --no-truncation)
count_lines("^proxy-2-whole@[0-9a-f]+-32-c " 36)
count_lines("^constant@[0-9a-f]+-32-c " 0)

# The program takes the tuning file, and gives what it means.
aplc(0 run --backend=interp known.fut A=@a.mtx ${b_1})
set(wanted "${output}")
aplc(0 run --backend=c --tuning found.tuning known.fut A=@a.mtx ${b_1})
if(NOT output STREQUAL wanted)
  message(FATAL_ERROR "with the tile that was found:\n${output}not\n${wanted}")
endif()

# Kernel texts of all tiles for a GPU, and how each is launched.
file(MAKE_DIRECTORY "${FOLDER}/kernels")
aplc(0 ${search} ${b_32} --backend cuda --kernels kernels)
file(STRINGS "${FOLDER}/kernels/kernels.tsv" lines)
file(GLOB texts "${FOLDER}/kernels/*.cu")
list(LENGTH lines lines)
list(LENGTH texts texts)
if(NOT lines EQUAL texts OR lines EQUAL 0)
  message(FATAL_ERROR "${lines} lines for ${texts} texts")
endif()

file(WRITE "${FOLDER}/plain.fut" "entry f (x: i32): i32 = x\n")
aplc(64 sections plain.fut 1)
want_error("no entry has an operand that is sparse and constant")

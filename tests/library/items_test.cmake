# One backend's library and server of items.fut, used from outside; and what they say of themselves, by our schemas.
# Run as: cmake -DAPLC=... -DBACKEND=c|cuda -DSOURCE=... -DFOLDER=... -DDRIVER=... -DCC=... [-DPYTHON=...] -P items_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/tests/library/items.fut" "${SOURCE}/tests/library/items.c" "${SOURCE}/tests/library/sums.fut"
     "${SOURCE}/tests/library/sparse.fut" "${SOURCE}/tests/library/values.fut" "${SOURCE}/tests/library/want.h"
     DESTINATION "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
set(ENV{CC} "${CC}")
set(ENV{CFLAGS} "-O1 -Wall -Wextra -Werror")

macro(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${result}\n${output}${errors}")
  endif()
endmacro()

# Its header is that of the library, whose own file has another name.
file(RENAME "${FOLDER}/items.c" "${FOLDER}/check.c")
run("${APLC}" ${BACKEND} --library -o items items.fut)
run("${CC}" -std=c11 -Wall -Wextra -Werror ${flags} -c items.c -o items.o)
run("${CC}" -Wall -Wextra -Werror ${flags} items.o check.c ${libraries} -o check)
run(./check report.json)
file(READ "${FOLDER}/report.json" report)
string(FIND "${report}" "\"kind\": \"kernel\"" kernel)
if((BACKEND STREQUAL "cuda" AND kernel EQUAL -1) OR (BACKEND STREQUAL "c" AND NOT kernel EQUAL -1))
  message(FATAL_ERROR "the report of ${BACKEND} has kernels at ${kernel}")
endif()
file(READ "${FOLDER}/items.json" manifest)
string(JSON zip GET "${manifest}" types "[]point" record_array zip)
string(JSON element GET "${manifest}" types "[](point, []i64)" record_array elemtype)
string(JSON set GET "${manifest}" types "[][]side" opaque_array set)
string(JSON output GET "${manifest}" entry_points walk output type)
string(JSON behind GET "${manifest}" types segment record fields 1 type)
string(JSON sized GET "${manifest}" types "path" record fields 1 type)
string(JSON whole GET "${manifest}" entry_points moved inputs 1 type)
string(JSON numbers GET "${manifest}" entry_points moved inputs 0 type)
string(JSON elements GET "${manifest}" types "points" record_array elemtype)
string(JSON rank GET "${manifest}" types "[]points" record_array rank)
string(JSON group GET "${manifest}" entry_points grouped inputs 0 type)
string(JSON field GET "${manifest}" types "{all: points}" record fields 0 type)
string(JSON sums GET "${manifest}" entry_points same_sides output type)
set(named "${whole} | ${numbers} | ${elements} | ${rank} | ${group} | ${field} | ${sums}")
if(NOT named STREQUAL "points | []f32 | {x: f32, y: f32} | 2 | []points | points | sides_of")
  message(FATAL_ERROR "arrays behind names are ${named}")
endif()
if(NOT behind STREQUAL "point" OR NOT sized STREQUAL "[]point")
  message(FATAL_ERROR "fields behind names are ${behind} and ${sized}, not points")
endif()
if(NOT zip STREQUAL "futhark_zip_opaque_arr1d_point" OR NOT element STREQUAL "(point, []i64)" OR
   NOT set STREQUAL "futhark_set_opaque_arr2d_side" OR NOT output STREQUAL "[]point")
  message(FATAL_ERROR "the manifest says: ${manifest}")
endif()

if(PYTHON)
  set(manifests items.json)
  foreach(program sums sparse values)
    run("${APLC}" ${BACKEND} --library -o ${program} ${program}.fut)
    list(APPEND manifests ${program}.json)
  endforeach()
  run("${PYTHON}" "${SOURCE}/tests/library/validate.py" "${SOURCE}/docs/manifest.schema.json" ${manifests})
  run("${PYTHON}" "${SOURCE}/tests/library/validate.py" "${SOURCE}/docs/report.schema.json" report.json)
endif()

run("${APLC}" ${BACKEND} --server -o served items.fut)
file(WRITE "${FOLDER}/numbers" "[1f32, 2f32, 3f32] [10f32, 20f32, 30f32] 1i32 [[1i32, -2i32, 3i32], [4i32, 5i32, -6i32]]")
file(WRITE "${FOLDER}/input" "kind []point
kind f32
elemtype []point
rank [][]side
fields []point
restore \"${FOLDER}/numbers\" xs []f32 ys []f32 one i32 grid [][]i32
zip ps []point xs ys
shape ps
index p ps 1
type p
index none ps 3
index none ps 1 1
index none ps one
project y p y
index z xs 2
set xs y 0
call far far ps
store stored far y z
set xs one 0
set ps p 0
set ps xs 0
unzip ps a
unzip ps a xs
unzip ps a b
new_array again []point 2 p p
new_array numbers []f32 3 y z y
new_array short []f32 3 y z
new_array short []f32 x y z
new_array short []f32 -1
new_array huge [][]i32 4000000000 5000000000
new_array empty [][]i32 0 7
shape empty
zip short []point xs empty
zip short []i32 xs ys
zip short []point xs again
zip short []point xs
call sides ss grid
shape ss
call total ss_total ss
index s ss 1 2
variant s
set ss s 0 0
call total less ss
store sums ss_total less
")
execute_process(COMMAND ./served INPUT_FILE "${FOLDER}/input" WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(REGEX REPLACE "runtime: [0-9]+" "runtime: N" output "${output}")
file(WRITE "${FOLDER}/items.output" "${output}")
file(READ "${SOURCE}/tests/library/items.expected" expected)
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "exit code ${result}, it says:\n${output}\n${errors}\nand not:\n${expected}")
endif()
# Values of rank 0 in binary: 909 = 3^2 + 30^2, and 20, 3; then 13 without a negative number of the grid, and 12.
file(READ "${FOLDER}/stored" stored HEX)
file(READ "${FOLDER}/sums" sums HEX)
set(f32 "62020020663332")
set(i32 "62020020693332")
if(NOT stored STREQUAL "${f32}00406344${f32}0000a041${f32}00004040" OR NOT sums STREQUAL "${i32}0d000000${i32}0c000000")
  message(FATAL_ERROR "stored: ${stored} and ${sums}")
endif()

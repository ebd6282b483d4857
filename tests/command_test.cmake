# `aplc test`, `dataset`, `bench` and values in binary, on the programs of tests/command.
# Run as: cmake -DAPLC=... -DPROGRAMS=... -DFOLDER=... -P command_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(ENV{XDG_CACHE_HOME} "${FOLDER}/cache")

set(FOLDER_OF_RUNS "${PROGRAMS}")
include("${CMAKE_CURRENT_LIST_DIR}/run_aplc.cmake")

foreach(backend c interp emulate)
  aplc(0 test --backend=${backend} passes.fut refused.fut)
  want("programs +2 +0 +0 +0")
  want("cases +4 +0 +1 +0")
endforeach()
file(GLOB kept "${FOLDER}/cache/aplc/*")
if(NOT kept)
  message(FATAL_ERROR "no compiled object is kept")
endif()
# Values after -- may be negative, and numbers are of the parameter's type.
aplc(0 run --no-cache typed.fut -- -3 2 "[1, 2]")
want("^-2i64\n4.0f32\n.2u8, 3u8.\n$")
# A wrong value's location is one of the text that it stands in, not of the program.
file(WRITE "${FOLDER}/wrong.in" "1\n  2\n[3u8, x]\n")
aplc(2 run --no-cache typed.fut "@${FOLDER}/wrong.in")
want_error("wrong.in:3:7: error: `x` is no value of type u8 .run.argument.\n$")
aplc(2 run --no-cache typed.fut 1 2 "[3u8,x]")
want_error("typed.fut: error: argument .3u8,x.: `x` is no value of type u8 .run.argument.\n$")
# Of a long line the part that is meant is shown.
string(REPEAT "x + " 20000 sum)
file(WRITE "${FOLDER}/long.fut" "def f (x: i32) = ${sum} y")
aplc(3 check "${FOLDER}/long.fut")
string(LENGTH "${errors}" length)
if(length GREATER 1000)
  message(FATAL_ERROR "a message has ${length} characters")
endif()
# Parameters beside the program, and structures.
aplc(0 test -i -s tuned.fut)
want("cases +1 +0 +0 +0")
want("structures +1 +0 +1 +0")
aplc(1 test -i --no-tuning tuned.fut)
aplc(0 run --backend=interp --tuning=tuned.fut.tuning tuned.fut 1 "[1, 2]")
want("^.8i64, 9i64.\n$")
aplc(0 test -i --exclude=small passes.fut)
want("programs +0 +0 +1 +0")
aplc(0 test -i --entry-point=add passes.fut refused.fut)
want("cases +1 +0 +0 +0")
# Where the interpreter needs too long, the C backend without tiling may say what is right.
file(WRITE "${FOLDER}/late.fut" "-- ==\n-- input { 1000000i64 } auto output\n"
  "def main (n: i64) : i64 = loop x = 1 for i < n do x * 3 + i\n")
aplc(1 test --reference-timeout=0 "${FOLDER}/late.fut")
want("no reference: interp: ")
aplc(0 test --reference-timeout=0 --reference=interp-or-c "${FOLDER}/late.fut")
want("cases +1 +0 +0 +0")

# A failure of one program is not one of the others.
aplc(1 test -i --timeout=2 --concurrency=2 "--json=${FOLDER}/tests.json" .)
want("FAILED [^\n]*fails.fut main wrong: wrong result: 4i32, expected 5i32\n")
want("FAILED [^\n]*fails.fut main no error: no error: ")
want("FAILED [^\n]*fails.fut main argument: run-time error: Error: ")
want("FAILED [^\n]*fails.fut main missing: bad test: ")
want("FAILED [^\n]*hangs.fut main endless: time-out: ")
want("FAILED [^\n]*unsupported.fut[^\n]*: unsupported: ")
want("programs +4 +3 +0 +0")
file(READ "${FOLDER}/tests.json" records)
string(JSON count LENGTH "${records}" tests)
set(states "")
math(EXPR last "${count} - 1")
foreach(k RANGE ${last})
  string(JSON name GET "${records}" tests ${k} case)
  string(JSON state GET "${records}" tests ${k} status)
  string(APPEND states "${name}=${state};")
endforeach()
foreach(state "right=passed" "wrong=failed" "quick=passed" "endless=failed" "not here=skipped")
  if(NOT "${state}" IN_LIST states)
    message(FATAL_ERROR "no ${state} in ${states}")
  endif()
endforeach()

# Values in binary, by way of files, packed too; the same values every time.
execute_process(COMMAND "${APLC}" dataset -b --i32-bounds=0:9 -g "[4]i32" OUTPUT_FILE "${FOLDER}/a.in")
execute_process(COMMAND "${APLC}" dataset -s 1 --i32-bounds=0:9 -g "[4]i32" OUTPUT_VARIABLE text)
execute_process(COMMAND "${APLC}" dataset INPUT_FILE "${FOLDER}/a.in" OUTPUT_VARIABLE back)
if(NOT text STREQUAL back)
  message(FATAL_ERROR "dataset: ${text} is ${back} after binary")
endif()
execute_process(COMMAND gzip -k "${FOLDER}/a.in")
execute_process(COMMAND "${APLC}" run --backend=interp -b passes.fut -e add "@${FOLDER}/a.in.gz" "[0, 0, 0, 0]"
                WORKING_DIRECTORY "${PROGRAMS}" OUTPUT_FILE "${FOLDER}/b.out")
file(READ "${FOLDER}/a.in" a HEX)
file(READ "${FOLDER}/b.out" b HEX)
if(NOT a STREQUAL b)
  message(FATAL_ERROR "run -b printed ${b}, not ${a}")
endif()
aplc(64 dataset -g "[n]f32")
aplc(64 dataset --i32-bounds=2:1)

aplc(0 bench -r 3 "--json=${FOLDER}/bench.json" passes.fut)
want("passes.fut literal: [0-9]+ us")
file(READ "${FOLDER}/bench.json" times)
string(JSON runs LENGTH "${times}" passes.fut datasets literal runtimes)
string(JSON more LENGTH "${times}" passes.fut:add datasets "[10]i32 [10]i32" runtimes)
if(NOT runs EQUAL 3 OR NOT more EQUAL 3)
  message(FATAL_ERROR "bench: ${runs} and ${more} runs")
endif()
aplc(1 bench -r 1 --no-convergence-phase --backend=interp fails.fut)
want("wrong: wrong result: ")

# Random inputs of another seed.
aplc(0 dataset -s 7 --text -g i64)
string(STRIP "${output}" seventh)
file(WRITE "${FOLDER}/seeded.fut" "-- ==\n-- random input { i64 } output { ${seventh} }\nentry main (x: i64) = x\n")
aplc(1 test -i "${FOLDER}/seeded.fut")
aplc(0 test -i --seed=7 --no-terminal "${FOLDER}/seeded.fut")
aplc(1 bench -r 1 --no-convergence-phase --backend=interp "${FOLDER}/seeded.fut")
aplc(0 bench -r 1 --no-convergence-phase --backend=interp --seed=7 "${FOLDER}/seeded.fut")
aplc(64 test --seed=-1 "${FOLDER}/seeded.fut")

# As servers: with options of their own, profiled, or compiled before.
file(COPY "${PROGRAMS}/passes.fut" DESTINATION "${FOLDER}/served")
set(served "${FOLDER}/served/passes.fut")
set(ENV{CFLAGS} "-O0")  # compiling the runtime takes most of the time
aplc(0 test --timeout=200 --pass-option=--num-threads=1 --pass-option=-D "${served}")
want("cases +4 +0 +1 +0")
aplc(1 test --timeout=200 --pass-option=--param=nothing=3 "${served}")
want("bad test: error: the server has ended: no tuning parameter `nothing`")
aplc(1 test -i --pass-option=-L "${served}")
want("bad test: .*on interp")
file(WRITE "${FOLDER}/served/runner" "#!/bin/sh\necho \"$@\" >>'${FOLDER}/served/started'\nexec \"$@\"\n")
file(CHMOD "${FOLDER}/served/runner" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
aplc(0 test "--runner=${FOLDER}/served/runner" -p --num-threads=1 -e add "${served}")
file(READ "${FOLDER}/served/started" output)
want("/server-[0-9]+ --num-threads=1\n$")
aplc(64 bench --profile "${served}")
aplc(0 bench -r 1 --no-convergence-phase --profile "--json=${FOLDER}/profile.json" --entry-point=add "${served}")
file(READ "${FOLDER}/profile.json" profile)
string(JSON datasets GET "${profile}" "${served}:add" datasets "[10]i32 [10]i32")
string(JSON runs LENGTH "${datasets}" runtimes)
string(JSON events LENGTH "${datasets}" profiling events)
string(JSON name GET "${datasets}" profiling events 0 name)
string(JSON said TYPE "${datasets}" stderr)
if(events LESS runs OR NOT name STREQUAL "add" OR NOT said STREQUAL "STRING")
  message(FATAL_ERROR "bench --profile: ${runs} runs, ${events} events of ${name}, and a ${said}")
endif()
aplc(1 bench -r 1 --no-convergence-phase --skip-compilation "${served}")
want("there is no program [^\n]*served/passes ")
aplc(0 c --server -o "${FOLDER}/served/passes" "${served}")
# What is there runs, whatever the text says by now.
file(READ "${served}" text)
string(REPLACE "map2 (+) a b" "map2 (*) a b" text "${text}")
file(WRITE "${served}" "${text}")
file(WRITE "${FOLDER}/served/spec" "Sums.\n==\nentry: add\ninput { [1, 2] [3, 4] }\n\noutput { [4, 6] }\n\n"
  "More sums.\n==\nentry: add\ninput { [1] [3] } output { [4] }\n")
aplc(0 bench -r 1 --no-convergence-phase --skip-compilation "--spec-file=${FOLDER}/served/spec" "${served}")
want("passes.fut:add #0 [^\n]* us .*passes.fut:add #0 [^\n]* us ")
aplc(1 test "--spec-file=${FOLDER}/served/spec" "${served}")
want("add #0 [^\n]*: wrong result: at .0.: 3i32, expected 4i32.*cases +0 +2 +0 +0")
aplc(1 test "--spec-file=${FOLDER}/served/passes.fut" "${served}")
want("passes.fut has no test block")
unset(ENV{CFLAGS})

# Properties: true for all random arguments, or an argument that is as small as it gets.
file(WRITE "${FOLDER}/properties.fut" [=[
-- ==
-- property: reversed made
-- property: short

-- ==
-- property: pairs shrunk divides variant

#[prop]
entry reversed [n] (xs: [n]i32) : bool = and (map2 (==) (reverse (reverse xs)) xs)

entry make (size: i64) (seed: u64) : (i64, [3]u64) = (size, replicate 3 (seed % 7))
#[prop(gen(make), size(12))]
entry made ((size, seeds): (i64, [3]u64)) : bool = size == 12 && all (< 7) seeds

#[prop]
entry short (xs: []u8) : bool = length xs < 3

type point = {x: i32, y: f32}
#[prop]
entry pairs (points: []point) : bool = all (\p -> p.x < 10) points

entry number (_: i64) (seed: u64) : i32 = 100 + i32.u64 (seed % 1000)
entry smaller (x: i32) (random: u64) : i32 = if random % 2 == 0 then x / 2 else x - 1
#[prop(gen(number), shrink(smaller))]
entry shrunk (x: i32) : bool = x < 17

#[prop]
entry divides (x: i32) : bool = 10 / (x - 5 - x) < 0 && 10 / (x & 1) >= 0

type some = #none | #both i32 bool
entry both (_: i64) (_: u64) : some = #both 3 true
#[prop(gen(both))]
entry variant (x: some) : bool = match x case #none -> true case #both _ _ -> false
]=])
foreach(backend c interp)
  aplc(1 test --backend=${backend} "${FOLDER}/properties.fut")
  want("properties +2 +5 +0 +0")
  want("properties.fut short: false property: false for .0u8, 0u8, 0u8. .size 3, seed 1, argument 1 of 100")
  want("properties.fut pairs: false property: false for .*{x = 10i32, y = 0.0f32}")
  want("properties.fut shrunk: false property: false for 17i32 ")
  want("properties.fut divides: run-time error: Error: .*division by zero.* for 0i32 ")
  want("properties.fut variant: false property: false for #both 3i32 true ")
endforeach()
# Sizes, numbers of arguments and of tries may be others.
aplc(0 test -i --max-size=2 -e short "${FOLDER}/properties.fut")
want("properties +1 +0 +0 +0")
aplc(0 test -i --num-tests=0 "${FOLDER}/properties.fut")
want("properties +7 +0 +0 +0")
aplc(1 test -i --num-tries=0 -e shrunk "${FOLDER}/properties.fut")
want("false for [0-9][0-9][0-9]+i32 ")
# What is no property, or one that no block names, fails.
file(WRITE "${FOLDER}/improper.fut" [=[
-- ==
-- property: nothing none two number narrow mistyped variant crashes sized
entry none (x: i32) : bool = x == x
#[prop]
entry two (x: i32) (y: i32) : bool = x == y
#[prop]
entry number (x: i32) : i32 = x
entry make (size: i64) (seed: i64) : i32 = i32.i64 (size + seed)
#[prop(gen(make))]
entry narrow (x: i32) : bool = x == x
#[prop(genn(make))]
entry mistyped (x: i32) : bool = x == x
#[prop]
entry variant (x: #a | #b) : bool = x == #a
entry crash (size: i64) (_: u64) : i64 = 1 / (size - 50)
#[prop(gen(crash))]
entry crashes (x: i64) : bool = x == x
#[prop]
entry sized [n] ((xs, ys): ([n]i32, [n+1]i32)) : bool = length xs < length ys
#[prop]
entry forgotten (x: i32) : bool = x == x
]=])
aplc(1 test -i "${FOLDER}/improper.fut")
want("properties +0 +10 +0 +0")
want("nothing: bad test: the property `nothing` is no entry")
want("none: bad test: the property `none` has 0 attributes #.prop")
want("two: bad test: the property `two` has 2 parameters")
want("number: bad test: the property `number` must give a bool, not i32")
want("narrow: bad test: the generator `make` of `narrow` must be of type i64 -> u64 -> i32, and is of type i64 -> i64 -> i32")
want("mistyped: bad test: #.prop. of `mistyped` takes gen.ENTRY., shrink.ENTRY. and size.NUMBER., not `genn.make.`")
want("variant: bad test: no random values are made of type #a | #b: `variant` needs a generator")
want("crashes: run-time error: the generator `crash` fails with size 50 and seed [0-9]+: Error: .*division by zero")
want("sized: bad test: `sized` needs a generator, #.prop.gen.ENTRY...: one size of its argument depends on another")
want("forgotten: bad test: `forgotten` has #.prop., and no test block says `property: forgotten`")
# Only `-- ==` begins a block.
file(WRITE "${FOLDER}/unread.fut" "--==\n-- input { 1 } output { 2 }\ndef main (x: i32) = x\n")
aplc(0 test -i "${FOLDER}/unread.fut")
want("compile only +1 +0")
want_error("unread.fut:1:1: warning: this comment begins no test block: one begins with `-- ==`")

# Options of Futhark's commands.
aplc(0 test -c --pass-compiler-option=-w --notty -e add passes.fut)
want("^\nc .*cases +1 +0")
aplc(0 test -I passes.fut)
want("compile only +1 +0")
aplc(64 test -c -i passes.fut)
aplc(64 test --pass-compiler-option=-O9 passes.fut)
want_error("--pass-compiler-option: .*the options are --safe, ")
file(WRITE "${FOLDER}/unsafe.fut"
  "-- ==\n-- input { [1, 2] 5i64 } error: out of bounds\n-- warning: unheard\ndef main (xs: []i32) (i: i64) = #[unsafe] xs[#[unheard] i]\n")
aplc(0 test -i --pass-compiler-option=--safe "${FOLDER}/unsafe.fut")
want("cases +1 +0")
aplc(1 test -i --pass-compiler-option=--safe --pass-compiler-option=-W "${FOLDER}/unsafe.fut")
want("wrong warning")
aplc(1 test -i --pass-compiler-option=--Werror "${FOLDER}/unsafe.fut")
want("compile error: .*error: Unknown attribute")
aplc(2 run --safe "${FOLDER}/unsafe.fut" "[1, 2]" 5)
want_error("out of bounds")
aplc(0 c "${FOLDER}/unsafe.fut")
if(output MATCHES "out of bounds")
  message(FATAL_ERROR "an index in #[unsafe] is checked")
endif()
aplc(0 c --safe "${FOLDER}/unsafe.fut")
want("out of bounds")
aplc(0 check "${FOLDER}/unsafe.fut")
want_error("warning: Unknown attribute")
aplc(2 check --Werror "${FOLDER}/unsafe.fut")
want_error("error: Unknown attribute")
foreach(option -w -W)
  aplc(0 check ${option} --Werror "${FOLDER}/unsafe.fut")
  if(errors)
    message(FATAL_ERROR "check ${option} prints ${errors}")
  endif()
endforeach()
aplc(0 bench -r 1 --backend=interp "--ignore-files=fa.ls\.fut$" fails.fut passes.fut)
want("passes.fut literal: ")
aplc(64 bench --ignore-files=\( passes.fut)
want_error("--ignore-files: ")

# Scripts: arrays without elements, files of several values, and values that a server stored.
execute_process(COMMAND "${APLC}" dataset -b -g 3i32 -g "[1.5f32, 2f32]" OUTPUT_FILE "${FOLDER}/state.in")
file(WRITE "${FOLDER}/script.fut" [=[
-- ==
-- entry: lengths
-- script input { (empty([0]i32), empty ( [0][4]f32 ), "a$b") } output { 0i64 0i64 4i64 3i64 }
type~ state = {count: i32, xs: []f32}
entry lengths [n] [m] [k] (_: [n]i32) (_: [m][k]f32) (text: []u8) = (n, m, k, length text)
-- ==
-- entry: total
-- script input { total_of ($restore "state" "state.in") } output { 6.5f32 }
-- script input { let (n, xs) = $loaddata "state.in" in total_of {count = n, xs = xs} } output { 6.5f32 }
-- script input { $restore "state" } error: x
entry total_of (s: state) = f32.i32 s.count + f32.sum s.xs
entry total (x: f32) = x
]=])
aplc(1 test -i "${FOLDER}/script.fut")
want("cases +3 +1 +0 +0")
want("bad test: input: the script cannot be run: .restore takes \"TYPE\" \"FILE\"|unsupported: input: the script cannot be run: .restore takes \"TYPE\" \"FILE\"")

# Generated C is without warnings, of programs, servers and libraries.
foreach(compiler gcc clang)
  find_program(FOUND_${compiler} ${compiler})
  if(NOT FOUND_${compiler})
    message("generated C is not compiled by ${compiler}, which is not there")
    continue()
  endif()
  foreach(case "executable=passes.fut" "server=../library/values.fut" "library=../library/sums.fut"
          "executable=../library/sparse.fut")
    string(REGEX MATCH "(.*)=(.*)" case "${case}")
    aplc(0 c --${CMAKE_MATCH_1} -o - "${CMAKE_MATCH_2}")
    file(WRITE "${FOLDER}/warned.c" "${output}")
    execute_process(COMMAND ${FOUND_${compiler}} -std=c11 -Wall -Wextra -pedantic -Werror -fopenmp -fsyntax-only
                            "${FOLDER}/warned.c" RESULT_VARIABLE result ERROR_VARIABLE errors)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "${compiler} warns of ${CMAKE_MATCH_2}:\n${errors}")
    endif()
  endforeach()
endforeach()

# Sparse matrices: what is in them, plans, other formats.
aplc(0 sparse inspect small.mtx --svg "${FOLDER}/small.svg")
want("4 by 20, 8 non-zeros")
want("explicit zeros: 1\nempty rows: 1, empty columns: 15")
aplc(0 sparse search small.mtx -o "${FOLDER}/small.plan" --device cpu --dense 32 --svg "${FOLDER}/plan.svg")
want("us  hybrid")
want("us  dense")
aplc(0 sparse show "${FOLDER}/small.plan" small.mtx)
want("matrix of 4 by 20 with 8 non-zeros")
want("  hybrid: [0-9.]+ us by the model\n")
# All of a matrix is in its picture: 100 by 100 cells of two rows and columns.
file(WRITE "${FOLDER}/corner.mtx" "%%MatrixMarket matrix coordinate pattern general\n200 200 1\n200 200\n")
aplc(0 sparse search "${FOLDER}/corner.mtx" -q --svg "${FOLDER}/corner.svg")
want("form (dense|tiles)")
file(READ "${FOLDER}/corner.svg" output)
want("<title>Pattern of a matrix of 200 by 200 with 1 non-zeros</title>")
want("columns</text>.*>200</text>.*rows</text>.*non-zeros of a cell: 1<")
if(output MATCHES " 0[.]0 %")
  message(FATAL_ERROR "a format that nothing has is in the legend")
endif()
want("scale\\(6.4000 6.4000\\).*d=\"M99 99h1v1h-1z\"")
aplc(64 sparse show "${FOLDER}/small.plan" --svg "${FOLDER}/nothing.svg")
want_error("--svg draws the plan's matrix")
# What cannot be written is said before the search; what a link points to is written, the link stays.
aplc(64 sparse search small.mtx -o "${FOLDER}/nowhere/small.plan")
want_error("cannot write .*nowhere/small.plan")
file(CREATE_LINK small.plan "${FOLDER}/link.plan" SYMBOLIC)
aplc(0 sparse search small.mtx -o "${FOLDER}/link.plan" --operator sddmm --dense 32)
file(READ "${FOLDER}/small.plan" output)
want("operator sddmm")
if(NOT IS_SYMLINK "${FOLDER}/link.plan")
  message(FATAL_ERROR "a link was replaced by a file")
endif()
aplc(0 sparse convert small.mtx "${FOLDER}/small.smtx")
file(READ "${FOLDER}/small.smtx" output)
want("^4, 20, 8\n0 3 6 6 8\n0 4 19 0 4 19 1 2\n$")
aplc(0 sparse convert "${FOLDER}/small.smtx" "${FOLDER}/back.mtx")
aplc(0 sparse show "${FOLDER}/small.plan" "${FOLDER}/back.mtx")
aplc(2 sparse inspect broken.mtx)
want_error("broken.mtx:4:1: error: the row is not in the matrix")
aplc(2 sparse show small.mtx)
aplc(64 sparse inspect missing.mtx)
aplc(64 sparse search small.mtx --formats coo)
aplc(64 sparse search small.mtx --device abacus)
file(WRITE "${FOLDER}/other.mtx" "%%MatrixMarket matrix coordinate pattern general\n4 20 1\n1 1\n")
aplc(2 sparse show "${FOLDER}/small.plan" "${FOLDER}/other.mtx")

# Matrix files as arguments of programs.
file(WRITE "${FOLDER}/sparse.fut"
  "#[sparse(A)]\nentry rows [n][m] (A: [n][m]f32) (x: [m]f32): [n]f32 = map (\\row -> f32.sum (map2 (*) row x)) A\n"
  "#[sparse(A, result)]\nentry twice [n][m] (A: [n][m]f64): [n][m]f64 = map (map (* 2)) A\n"
  "#[sparse(A)]\nentry whole [n][m] (A: [n][m]i32): i32 = i32.sum (flatten A)\n")
string(REPEAT "1, " 19 ones)
foreach(backend c interp)
  aplc(0 run --backend=${backend} "${FOLDER}/sparse.fut" -e rows A=@small.mtx "x=[${ones}1]")
  want("^.2.5f32, 8.0f32, 0.0f32, 15.0f32.\n$")
endforeach()
aplc(0 run "${FOLDER}/sparse.fut" -e twice A=@small.mtx)
want("^%%MatrixMarket matrix coordinate real general\n4 20 8\n1 1 3\n")
aplc(2 run "${FOLDER}/sparse.fut" -e whole A=@small.mtx)
want_error("argument `A`: an element is 1.5, a i32 is wanted")
aplc(2 run "${FOLDER}/sparse.fut" -e rows A=@broken.mtx "x=[1, 1]")
want_error("broken.mtx:4:1: error: the row is not in the matrix")
file(WRITE "${FOLDER}/unknown.fut" "#[sparse(B)]\nentry rows [n][m] (A: [n][m]f32) = A\n")
aplc(2 check "${FOLDER}/unknown.fut")
want_error("unknown.fut:1:1: error: #.sparse.B..: the entry `rows` has no parameter `B` .type.unknown-name.")

# A record of this machine is written where explain looks for it, or where -o says; it holds a figure measured here.
aplc(0 calibrate)
want("fmas_per_clock +[0-9.]+ +fused products")
want("config/aplc/cpu.txt: what `aplc explain` takes for the CPU\n$")
file(READ "${FOLDER}/config/aplc/cpu.txt" record)
if(NOT record MATCHES "\nname = this-cpu\n.*\nclock_ghz = [0-9.]+  # sums.*\nlaunch_us = [0-9.]+  # .*\napl-device-profile 2\n")
  message(FATAL_ERROR "the record is:\n${record}")
endif()
aplc(0 explain typed.fut)
want(" on this-cpu")
aplc(0 explain typed.fut --device=cpu)
want(" on cpu")
file(WRITE "${FOLDER}/file" "")
set(ENV{XDG_CONFIG_HOME} "${FOLDER}/file")
aplc(64 calibrate)
want_error("file/aplc/cpu.txt: Not a")
aplc(64 calibrate -o "${FOLDER}/file/none.txt")

# What people use to look for bugs: plug-ins, the switches of `aplc opt`, `aplc bisect` and `aplc reduce`.
# Run as: cmake -DAPLC=... -DPLUGINS=... -DPLANTED=... -DFOLDER=... -P opt_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(FOLDER_OF_RUNS "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/run_aplc.cmake")

file(WRITE "${FOLDER}/p.fut"
  "entry main [n] (xs: [n]i32) (y: i32) : i32 =\n  let ys = map (\\x -> x - y + 1) xs\n  in i32.sum (map (* 2) ys)\n")
set(program "${FOLDER}/p.fut")

# Plug-ins that are none.
file(WRITE "${FOLDER}/text.so" "no library")
aplc(64 opt --pass-plugin=nowhere.so p.fut)
want_error("cannot read nowhere.so.*command.no-such-file")
aplc(64 opt --pass-plugin=text.so p.fut)
want_error("text.so: error: cannot be loaded as a shared library.*command.plugin-not-loadable")
aplc(64 opt --pass-plugin=${PLUGINS}/no_entry.so p.fut)
want_error("no_entry.so: error: not a plug-in.*`apl_pass_plugin`.*command.plugin-no-entry")
aplc(64 opt --pass-plugin=${PLUGINS}/wrong_version.so p.fut)
want_error("built for version 99 of the plug-in interface, this program has version 2.*command.plugin-mismatch")
aplc(64 opt --pass-plugin=${PLUGINS}/wrong_compiler.so p.fut)
want_error("built by another compiler 3, libother, this program by .*command.plugin-mismatch")
aplc(64 opt --pass-plugin=${PLUGINS}/conflict.so p.fut)
want_error("adds a pass 'simplify', but there is one of that name.*command.plugin-conflict")
# And one that is, in every command that runs passes.
set(plugin "--pass-plugin=${PLANTED}")
set(wrong "--insert=start:planted-sub-swapped")
aplc(0 passes ${plugin})
want("planted-sub-swapped +wrong on purpose")
want("soac-end +before extract-kernels")
foreach(command "opt;-p;memory" "c" "cuda" "explain")
  aplc(0 ${command} ${plugin} ${wrong} --pass-statistics p.fut)
  want_error("1 +planted-sub-swapped")
endforeach()
aplc(0 run --no-cache ${plugin} ${wrong} p.fut "[10]" 3)
want("^-12i32\n$")
aplc(0 run --no-cache ${plugin} p.fut "[10]" 3)
want("^16i32\n$")
file(WRITE "${FOLDER}/t.fut" "-- ==\n-- entry: main\n-- input { 7 2 } output { 5 }\nentry main (x: i32) (y: i32) = x - y\n")
aplc(0 test --no-cache --backend=c t.fut)
aplc(1 test --no-cache --backend=c ${plugin} ${wrong} t.fut)
want("wrong result: -5i32, expected 5i32")
aplc(64 opt --insert=soac-edn:simplify p.fut)
want_error("there is no insertion point 'soac-edn'.*did you mean 'soac-end'")
aplc(64 opt --insert=simplify p.fut)
want_error("--insert takes POINT:PIPELINE")
aplc(64 opt --insert=soac-end:simplfy p.fut)
want_error("there is no pass 'simplfy'.*did you mean 'simplify'")
aplc(64 opt --insert=soac-end:place-memory p.fut)
want_error("pass 'place-memory' cannot stand at 'soac-end'")

# Words that are nearly right.
aplc(64 expalin p.fut)
want_error("there is no command 'expalin'; did you mean 'explain'")
aplc(64 opt --pipelin=soac p.fut)
want_error("'aplc opt' has no option '--pipelin'; did you mean '--pipeline'")
aplc(64 sparse inspect --svgg=x m.mtx)
want_error("'aplc inspect' has no option '--svgg'; did you mean '--svg'")

# Looking at passes.
aplc(0 opt -p soac --print-before=fuse --print-after=fuse,cse p.fut)
want_error("^-- IR after cse .application 4 of [0-9]+.: no change\nstage soac.*-- IR before fuse .application 6 of [0-9]+.\nstage soac")
want_error("-- IR after fuse .application 6 of [0-9]+.\nstage soac")
aplc(0 opt -p inline,cse --print-after p.fut)
want_error("^-- IR after inline.*-- IR after cse")
aplc(64 opt -p soac --print-after=fues p.fut)
want_error("there is no pass 'fues'.*did you mean 'fuse'")
aplc(0 opt -p soac --print-changed p.fut)
want_error("-- cse .application 4 of [0-9]+.: no change\n.*-- fuse .application 6 of [0-9]+.\n--- before\n\\+\\+\\+ after\n@@ .*\n-  let")
aplc(0 opt -p memory --stop-after=simplify:2 --pass-statistics p.fut)
want("^stage soac")
want_error("7  simplify")
if(errors MATCHES "8  cse")
  message(FATAL_ERROR "a pass ran after --stop-after:\n${errors}")
endif()
aplc(64 opt -p memory --stop-after=fuse:2 p.fut)
want_error("the pipeline has 1 application of that pass")
aplc(0 opt -p soac --pass-statistics p.fut)
want_error("#  pass +statements +applied +missed\n.*6  fuse +[0-9]+ -> [0-9]+ +[0-9]+")
aplc(0 opt -p soac --timing p.fut)
want_error("time +share +runs +pass\n.*ms +[0-9.]+% +2  simplify\n.*verification and printing\n.*100.0% +total\n$")
aplc(0 opt -p memory --opt-limit=6 p.fut)
want_error("opt-limit: ran fuse .application 6 of 17.\nopt-limit: skipped simplify .application 7 of 17.")
want_error("ran extract-kernels .*ran place-memory")
want("^stage memory")
aplc(0 run --no-cache ${plugin} ${wrong} --opt-limit=0 p.fut "[10]" 3)
want("^16i32\n$")

# Pipes.
execute_process(COMMAND "${APLC}" opt -p soac "${program}" COMMAND "${APLC}" opt -p extract-kernels
                COMMAND "${APLC}" opt - -p simplify,place-memory OUTPUT_VARIABLE output RESULTS_VARIABLE results)
if(NOT results STREQUAL "0;0;0")
  message(FATAL_ERROR "a pipe of aplc opt: ${results}")
endif()
want("^stage memory")
execute_process(COMMAND "${APLC}" opt INPUT_FILE "${program}" OUTPUT_VARIABLE output)
want("^stage soac of \"-\"")

# Several programs in a file, and what they should be refused with.
file(WRITE "${FOLDER}/split.aplir" "\
stage soac\n\
fun f [] (x : i32) : {i32} = { in {x} }\n\
-- -----\n\
stage soac\n\
fun g [] (x : i32) : {i32} = { in {y} } -- expected-error {{y}}\n\
-- -----\n\
-- expected-error@+3 {{ir.syntax}}\n\
stage soac\n\
fun h\n")
aplc(0 opt --split-input-file --verify-diagnostics split.aplir)
want("^stage soac\n\nfun f.*}\n$")
aplc(2 opt --split-input-file split.aplir)
want_error("split.aplir:5:.*split.aplir:10:")
want("fun f")
file(WRITE "${FOLDER}/expected.fut" "\
-- expected-remark@* {{[fuse:fused]}}\n\
-- expected-error@below {{nothing of the kind}}\n\
entry f [n] (xs: [n]i32) = i32.sum (map (+ 1) xs)\n\
entry g (x: i32) = x + z\n")
aplc(2 opt --verify-diagnostics -p fuse expected.fut)
want_error("expected.fut:2:1: error: expected error \"nothing of the kind\" on line 3 was not reported")
want_error("expected.fut:4:1: error: unexpected error: .*type.unknown-name")
want_error("expected.fut:1:1: error: expected remark")
file(WRITE "${FOLDER}/expected.fut" "-- expected-error {{x}\n")
aplc(64 opt --verify-diagnostics expected.fut)
want_error("expected.fut:1:1: error: an expected diagnostic has the form")

# Passes that fail.
set(crash "--pass-plugin=${PLUGINS}/crash.so")
execute_process(COMMAND "${APLC}" opt ${crash} -p simplify,crash,cse --reproducer=r.aplir p.fut
                WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
if(result STREQUAL "0" OR NOT EXISTS "${FOLDER}/r.aplir")
  message(FATAL_ERROR "a pass that aborts: ${result}, and no reproducer")
endif()
want_error("error: pass 'crash' crashed .bug.internal.")
file(READ "${FOLDER}/r.aplir" output)
want("^-- The module before crash .application 2 of 3. of aplc [0-9.]+\n-- Replay: aplc opt -p 'crash,cse' '--pass-plugin=.*' 'r.aplir'\nstage soac")
aplc(70 opt ${crash} -p break,cse --reproducer=r.aplir p.fut)
want_error("pass 'break' left an invalid module.*\nreproducer: r.aplir\n$")
aplc(70 opt ${crash} -p break r.aplir)
aplc(0 opt -p soac --reproducer=none.aplir p.fut)
if(EXISTS "${FOLDER}/none.aplir")
  message(FATAL_ERROR "a reproducer is left though nothing failed")
endif()

# Results before and after.
aplc(0 opt -p memory --compare-results -o out.aplir p.fut)
aplc(70 opt ${plugin} -p simplify,planted-sub-swapped --compare-results p.fut)
want_error("the passes changed the program's results: .*arguments of `main`")
aplc(0 opt --compare-with=p.fut -o again.aplir out.aplir)
aplc(70 opt ${plugin} -p planted-sub-swapped --compare-with=p.fut p.fut)
file(WRITE "${FOLDER}/none.fut" "def f (x: i32) = x\n")
aplc(64 opt --compare-results none.fut)
want_error("the results cannot be compared: ")
# What the interpreter cannot run is no change by a pass.
file(WRITE "${FOLDER}/gamma.fut" "entry main (x: f64) : f64 = vjp f64.gamma x 1\n")
aplc(3 opt -p inline --compare-results gamma.fut)
want_error("the results cannot be compared: before fails: the derivative of gamma cannot be compiled yet")

# Derivatives are gone before passes that do not take them.
file(WRITE "${FOLDER}/vjp.fut"
  "entry main [n] (xs: [n]f32) = vjp (\\xs -> let ys = copy xs with [0] = xs[1] in f32.sum (map f32.sin ys)) xs 1\n")
aplc(64 opt -p inline,elide-copies vjp.fut)
want_error("pass 'elide-copies' takes no derivatives, but the program has some: 'differentiate' comes before it")
aplc(64 opt -p inline,extract-kernels vjp.fut)
want_error("pass 'extract-kernels' takes no derivatives")
aplc(64 c --disable=differentiate vjp.fut)
want_error("takes no derivatives.*do not disable 'differentiate'")
aplc(0 opt -p inline,differentiate,elide-copies,extract-kernels vjp.fut)

# Bisecting, by IR and by limit.
set(check "'${APLC}' opt --compare-with='${program}' -o /dev/null")
aplc(0 bisect "${check}" ${plugin} --insert=before-fuse:planted-sub-swapped -p soac --diff -o before.aplir p.fut)
want("^the command fails from application 6 of 10 on: planted-sub-swapped\n--- before.*\n-.*sub.*\n\\+.*sub")
file(READ "${FOLDER}/before.aplir" output)
want("^-- Replay: aplc opt -p 'planted-sub-swapped' 'before.aplir'\nstage soac")
aplc(0 bisect "test \"$('${APLC}' run --no-cache '${PLANTED_OPTION}' --insert=soac-end:planted-sub-swapped --opt-limit={limit} '${program}' '[10]' 3)\" = 16i32")
want("on: planted-sub-swapped\n$")
aplc(64 bisect true p.fut)
want_error("succeeds after all 17 applications, too.*command.not-reproduced")
aplc(64 bisect false p.fut)
want_error("fails without the passes, too.*command.not-reproduced")
aplc(64 bisect "true {limit}")
want_error("needs a command of aplc with --opt-limit={limit}")
aplc(64 bisect true)

# Making smaller: the original is asked first.
aplc(64 reduce false p.fut)
want_error("exit code 1 on the original, and is to give 0.*command.not-reproduced")
aplc(64 reduce --timeout=0.1 "sleep 5 && test -f" p.fut)
want_error("does not end in 0.1 s on the original")
aplc(0 reduce "grep -q sum" -o small.fut p.fut)
file(READ "${FOLDER}/small.fut" output)
want("i32.sum")
string(LENGTH "${output}" length)
if(length GREATER 70)
  message(FATAL_ERROR "not reduced: ${output}")
endif()
aplc(0 check small.fut)
aplc(0 opt -o p.aplir p.fut)
aplc(0 reduce --exit-code=70 "'${APLC}' opt '${PLANTED_OPTION}' -p planted-sub-swapped --compare-results -o /dev/null" p.aplir)
want("^[0-9]+ statements -> 1 statements by [0-9]+ runs")
file(READ "${FOLDER}/p.reduced.aplir" output)
want("= sub")
# What the command needs is not there: nothing is written over.
aplc(64 reduce "true" p.fut -o p.fut)
want_error("p.fut")

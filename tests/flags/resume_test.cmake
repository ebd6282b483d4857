# A run of random programs with a state file goes on where one before stopped, and ends with what one run would say; a
# state file of other options is not continued.
# Run as: cmake -DRANDOM_TESTS=... -DFOLDER=... -P resume_test.cmake
set(state "${FOLDER}/state")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# run(OUT ARG...): OUT has what was printed; the run must succeed.
function(run out)
  execute_process(COMMAND "${RANDOM_TESTS}" --as-users --kind=branch-loops --c-flags=-O0 --seed=1 --batch=1 ${ARGN}
                  OUTPUT_VARIABLE printed ERROR_VARIABLE printed RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${code}\n${printed}")
  endif()
  set(${out} "${printed}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected /${pattern}/ in:\n${text}")
  endif()
endfunction()

run(whole --count=2)
string(REGEX MATCH "[0-9]+ agree in [0-9]+ comparisons, 0 failed" summary "${whole}")
run(first --count=1 "--state=${state}")
run(second --count=2 "--state=${state}")
expect("${second}" "goes on: 1 of 2, 0 failed")
expect("${second}" "${summary}")
run(done --count=2 "--state=${state}")
expect("${done}" "goes on: 2 of 2, 0 failed")
expect("${done}" "${summary}")
run(other --count=1 "--state=${state}" --threshold=1)
if(other MATCHES "goes on")
  message(FATAL_ERROR "continued the run of other options:\n${other}")
endif()

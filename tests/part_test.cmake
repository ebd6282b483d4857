# A project that has this one as a part compiles a file that includes the installed headers' names. Nothing is linked, since
# that would build all libraries again.
# Run as: cmake -DSOURCE=... -DFOLDER=... -DGENERATOR=... -DCOMPILER=... -P part_test.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}/tests/part" -B "${FOLDER}" --fresh -G "${GENERATOR}"
                        "-DAPL_SOURCE=${SOURCE}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
                RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the project is not configured:\n${said}")
endif()
file(READ "${FOLDER}/compile_commands.json" commands)
string(JSON count LENGTH "${commands}")
math(EXPR last "${count} - 1")
foreach(k RANGE ${last})
  string(JSON file GET "${commands}" ${k} file)
  if(NOT file MATCHES "/part[.]cpp$")
    continue()
  endif()
  string(JSON command GET "${commands}" ${k} command)
  separate_arguments(words UNIX_COMMAND "${command}")
  execute_process(COMMAND ${words} -fsyntax-only WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${command}\n${said}")
  endif()
  set(compiled TRUE)
endforeach()
if(NOT compiled)
  message(FATAL_ERROR "no command compiles part.cpp")
endif()

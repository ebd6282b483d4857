# What tests of the command line have in common: `aplc` in FOLDER_OF_RUNS, and what it said.

# Nothing of the user's own configuration.
set(ENV{XDG_CONFIG_HOME} "${FOLDER}/config")

# Runs aplc with the arguments after `code`; its exit code must be that. Output and errors are left in variables of
# these names.
macro(aplc code)
  execute_process(COMMAND "${APLC}" ${ARGN} WORKING_DIRECTORY "${FOLDER_OF_RUNS}" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result STREQUAL "${code}")
    message(FATAL_ERROR "aplc ${ARGN}: exit code ${result}, not ${code}\n${output}${errors}")
  endif()
endmacro()

# The last run's output, or its errors, must match a regular expression.
function(want text)
  if(NOT output MATCHES "${text}")
    message(FATAL_ERROR "no `${text}` in:\n${output}")
  endif()
endfunction()
function(want_error text)
  if(NOT errors MATCHES "${text}")
    message(FATAL_ERROR "no `${text}` in:\n${errors}")
  endif()
endfunction()

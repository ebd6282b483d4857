# Compiles one file that includes every installed header, with the installed folder on the path and, before it, headers of
# the user's own that have the names of ours.
# Run as: cmake -DPREFIX=... -DINCLUDEDIR=... -DCOMPILER=... -P installed_headers_test.cmake
set(include "${PREFIX}/${INCLUDEDIR}")
file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/apl/*.h")
if(NOT headers)
  message(FATAL_ERROR "no header was installed under ${include}")
endif()
list(SORT headers)
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>")
list(JOIN headers "\n" text)
set(own "${PREFIX}/../own_headers")
foreach(header IN LISTS headers)
  if(header MATCHES "<apl/(.+)>")
    file(WRITE "${own}/${CMAKE_MATCH_1}" "#error \"a header of the user's was taken for apl's ${CMAKE_MATCH_1}\"\n")
  endif()
endforeach()
set(source "${PREFIX}/../installed_headers.cpp")
file(WRITE "${source}" "${text}\n")
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wno-missing-field-initializers -Werror
    "-I${own}" "-I${include}" "${source}"
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the installed headers do not compile by themselves")
endif()

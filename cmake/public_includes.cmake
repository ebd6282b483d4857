# Run at installation, with APL_INCLUDE_DIR set: headers that include each other as "ir/module.h" in the tree include
# <apl/ir/module.h> once they are installed, so that a user's own ir/module.h is never taken for ours.
file(GLOB_RECURSE headers "${APL_INCLUDE_DIR}/*.h" "${APL_INCLUDE_DIR}/*.def")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REGEX REPLACE "(#include )\"([^\"/\n]+/[^\"\n]*)\"" "\\1<apl/\\2>" public "${text}")
  if(NOT public STREQUAL text)
    file(WRITE "${header}" "${public}")
  endif()
endforeach()

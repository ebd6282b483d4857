# How a library or a program of apl is declared.

# The warnings every target of ours is compiled with.
function(apl_set_warnings target)
  set(shadow "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(shadow -Wshadow=compatible-local)
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra ${shadow} -Wimplicit-fallthrough -Wundef
                         # Naming the fields that matter is how our structs are filled.
                         -Wno-missing-field-initializers
                         $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wredundant-move>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports these for correct uses of std::variant, std::optional and std::string.
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overread
                                -Wno-stringop-overflow>)
  endif()
  if(APL_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Headers that nearly every C++ file of ours includes, read once: it saves a third of the time of a whole build.
# Every file still includes what it uses: `./dev lint` compiles without this.
set(APL_COMMON_HEADERS "${PROJECT_SOURCE_DIR}/ir/builder.h" "${PROJECT_SOURCE_DIR}/ir/walk.h" <algorithm> <fmt/format.h>)

# apl_precompile(TARGET [SHARED_WITH TARGET] [HEADER...]): precompiles the common headers and HEADERs for TARGET.
function(apl_precompile target)
  if(NOT APL_PRECOMPILE OR NOT EXISTS "${PROJECT_SOURCE_DIR}/ir/walk.h")
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SHARED_WITH" "")
  if(arg_SHARED_WITH)
    target_precompile_headers(${target} REUSE_FROM ${arg_SHARED_WITH})
    return()
  endif()
  set(headers ${APL_COMMON_HEADERS} ${arg_UNPARSED_ARGUMENTS})
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  string(REPLACE ">>" "$<ANGLE-R>>" headers "${headers}")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# Code that calls the libraries, which do the work: in the dev preset nothing waits for it but its compilation, of which
# optimisation is a third.
function(apl_calls_libraries target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
endfunction()

# Libraries with an interpreter or the emulator: tests wait for what these run, so in the dev preset, too, they are
# optimised as for use (a third more to compile, a third less to run).
function(apl_runs_programs target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O2>)
endfunction()

# What shares its precompiled headers with the libraries, with those that run programs, with the programs, and with what
# reads command lines: a precompiled header costs every file that begins with it, also where nothing of it is used, since
# templates that its inline functions call are instantiated again (CLI11's: two seconds a file).
if(APL_PRECOMPILE)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "int main() {}\n")
  add_library(apl_precompiled OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
  add_library(apl_precompiled_optimised OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
  apl_runs_programs(apl_precompiled_optimised)
  add_library(apl_precompiled_program OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
  apl_calls_libraries(apl_precompiled_program)
  add_library(apl_precompiled_driver OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
  target_link_libraries(apl_precompiled_driver PRIVATE CLI11::CLI11)
  apl_calls_libraries(apl_precompiled_driver)
  foreach(target apl_precompiled apl_precompiled_optimised apl_precompiled_program apl_precompiled_driver)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE ${APL_FMT})
    apl_set_warnings(${target})
  endforeach()
  apl_precompile(apl_precompiled)
  apl_precompile(apl_precompiled_optimised)
  apl_precompile(apl_precompiled_program)
  apl_precompile(apl_precompiled_driver <CLI/CLI.hpp>)
endif()

# For programs: headers that are precompiled for libraries want their code for addresses.
function(apl_precompile_as_library target shared_with)
  if(APL_PRECOMPILE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  apl_precompile(${target} SHARED_WITH ${shared_with})
endfunction()

# Sets `result` to the files that match the patterns; a file added later is found by the next build.
function(apl_glob result)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/")
  # A file's name stands for itself: as a pattern it would be looked for in all folders below.
  set(names ${ARGN})
  list(FILTER names EXCLUDE REGEX "[*]")
  list(FILTER ARGN INCLUDE REGEX "[*]")
  set(files "")
  if(ARGN)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${ARGN})
  endif()
  foreach(name IN LISTS names)
    if(EXISTS "${name}")
      list(APPEND files "${name}")
    endif()
  endforeach()
  list(SORT files)
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# Sets `result` to whether a target can be declared: it has sources, and the apl targets it links exist.
function(apl_is_ready result target sources)
  set(${result} TRUE PARENT_SCOPE)
  if(NOT sources)
    message(STATUS "${target}: no sources yet, skipped")
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()
  foreach(needed IN LISTS ARGN)
    if(needed MATCHES "^apl_" AND NOT TARGET ${needed})
      message(STATUS "${target}: needs ${needed}, skipped")
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Several files a compiler run: most of the time goes to headers.
function(apl_batch target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${APL_BATCH} UNITY_BUILD_BATCH_SIZE 18)
endfunction()

# apl_add_library(NAME [NOT_INSTALLED] [CALLS_LIBRARIES] [COMMAND_LINE] [RUNS_PROGRAMS] SOURCES pattern... [LINK ...] [LINK_PRIVATE ...] [LINK_STATIC ...])
# Declares the static library apl_NAME, alias and exported name apl::NAME.
# LINK: its headers need it; LINK_PRIVATE: header-only, used in our .cpp files alone;
# LINK_STATIC: used in our .cpp files, and whoever links the library must link it too.
# CALLS_LIBRARIES: the others do the work. COMMAND_LINE: the same, and it includes CLI11. RUNS_PROGRAMS: what it runs is what
# tests wait for.
function(apl_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NOT_INSTALLED;CALLS_LIBRARIES;COMMAND_LINE;RUNS_PROGRAMS" "" "SOURCES;LINK;LINK_PRIVATE;LINK_STATIC")
  set(target apl_${name})
  apl_glob(sources ${arg_SOURCES})
  apl_is_ready(ready ${target} "${sources}" ${arg_LINK})
  if(NOT ready)
    return()
  endif()
  add_library(${target} STATIC ${sources})
  # The precompiled headers are those of C++, and batches would want them.
  set(c_sources ${sources})
  list(FILTER c_sources INCLUDE REGEX "[.]c$")
  set_source_files_properties(${c_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(apl::${name} ALIAS ${target})
  # Headers are included as "ir/module.h" in the tree and as <apl/ir/module.h> once they are installed.
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${arg_LINK} PRIVATE ${arg_LINK_STATIC})
  foreach(library IN LISTS arg_LINK_PRIVATE)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  apl_set_warnings(${target})
  # The precompiled headers are C++.
  set(c_sources ${sources})
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${c_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  if(arg_COMMAND_LINE)
    apl_calls_libraries(${target})
    apl_precompile(${target} SHARED_WITH apl_precompiled_driver)
  elseif(arg_CALLS_LIBRARIES)
    apl_calls_libraries(${target})
    apl_precompile(${target} SHARED_WITH apl_precompiled_program)
  elseif(arg_RUNS_PROGRAMS)
    apl_runs_programs(${target})
    apl_precompile(${target} SHARED_WITH apl_precompiled_optimised)
  else()
    apl_precompile(${target} SHARED_WITH apl_precompiled)
  endif()
  apl_batch(${target})
  if(NOT arg_NOT_INSTALLED)
    set_property(GLOBAL APPEND PROPERTY APL_INSTALLED_TARGETS ${target})
  endif()
endfunction()

# apl_add_program(NAME [NOT_INSTALLED] SOURCES pattern... [LINK ...] [LINK_PRIVATE ...] [PRECOMPILE header...])
function(apl_add_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NOT_INSTALLED" "" "SOURCES;LINK;LINK_PRIVATE;PRECOMPILE")
  apl_glob(sources ${arg_SOURCES})
  apl_is_ready(ready ${target} "${sources}" ${arg_LINK})
  if(NOT ready)
    return()
  endif()
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${arg_LINK} ${arg_LINK_PRIVATE})
  target_compile_definitions(${target} PRIVATE APL_VERSION="${PROJECT_VERSION}")
  if(APL_PORTABLE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  apl_set_warnings(${target})
  apl_calls_libraries(${target})
  apl_batch(${target})
  if(arg_PRECOMPILE)
    apl_precompile(${target} ${arg_PRECOMPILE})
  else()
    apl_precompile_as_library(${target} apl_precompiled_program)
  endif()
  if(NOT arg_NOT_INSTALLED)
    set_property(GLOBAL APPEND PROPERTY APL_INSTALLED_TARGETS ${target})
  endif()
endfunction()

# libapl.so: the C API (capi/apl.h). What it exports, and in which version, is in capi/libapl.map.
set(apl_version_script "${PROJECT_SOURCE_DIR}/capi/libapl.map")
add_library(apl_shared SHARED capi/apl.cpp capi/messages.cpp capi/modules.cpp capi/programs.cpp capi/values.cpp)
add_library(apl::apl ALIAS apl_shared)
set_target_properties(apl_shared PROPERTIES OUTPUT_NAME apl EXPORT_NAME apl VERSION "${PROJECT_VERSION}"
  SOVERSION "${PROJECT_VERSION_MAJOR}" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
  LINK_DEPENDS "${apl_version_script}")
target_compile_definitions(apl_shared PRIVATE APL_VERSION="${PROJECT_VERSION}")
target_include_directories(apl_shared PRIVATE "${PROJECT_SOURCE_DIR}" INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(apl_shared PRIVATE apl_compiler)
target_link_options(apl_shared PRIVATE "LINKER:--version-script=${apl_version_script}" "LINKER:--no-undefined")
if(APL_PORTABLE)
  target_link_options(apl_shared PRIVATE -static-libstdc++ -static-libgcc)
endif()
apl_set_warnings(apl_shared)
apl_calls_libraries(apl_shared)
apl_precompile(apl_shared SHARED_WITH apl_precompiled_program)
apl_batch(apl_shared)
set_property(GLOBAL APPEND PROPERTY APL_INSTALLED_TARGETS apl_shared)

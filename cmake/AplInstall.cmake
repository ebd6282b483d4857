# Libraries, the program, the headers that users need, and what find_package(apl) reads.
include(CMakePackageConfigHelpers)

get_property(installed_targets GLOBAL PROPERTY APL_INSTALLED_TARGETS)
if(NOT installed_targets)
  return()
endif()

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/apl")
# All that an installation needs, without tests and benchmarks.
add_custom_target(apl_installed DEPENDS ${installed_targets})
install(TARGETS ${installed_targets} EXPORT aplTargets)
install(EXPORT aplTargets NAMESPACE apl:: DESTINATION "${config_dir}")

# Projects that have this one as a part (add_subdirectory, FetchContent) find the installed headers' names in a folder of
# the build, as files that include the tree's.
set(part_headers "${PROJECT_BINARY_DIR}/include/apl")
function(apl_offer_headers folder)
  if(PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  foreach(header IN LISTS ARGN)
    get_filename_component(name "${header}" NAME)
    file(CONFIGURE OUTPUT "${part_headers}/${folder}/${name}" CONTENT "#include \"${header}\"\n" @ONLY)
  endforeach()
endfunction()
if(NOT PROJECT_IS_TOP_LEVEL)
  foreach(target IN LISTS installed_targets)
    get_target_property(kind ${target} TYPE)
    if(kind MATCHES "LIBRARY")
      target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>")
    endif()
  endforeach()
endif()

# A pass's own parts (passes/NAME/) and the runtime of generated code stay inside.
function(apl_install_headers folder)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/${folder}/" OUTPUT_VARIABLE patterns)
  file(GLOB headers CONFIGURE_DEPENDS ${patterns})
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/apl/${folder}")
  apl_offer_headers("${folder}" ${headers})
endfunction()
apl_install_headers(ir "*.h" "*.def")
apl_install_headers(passes "*.h" "*.def")
apl_install_headers(passes/analysis "*.h")
apl_install_headers(passes/sparse composition.h cost.h definitions.h greedy.h matrix.h order.h plan.h profile.h read.h
                    row_group.h search.h)
apl_install_headers(runtime/sparse csr.h sparse.h)
apl_install_headers(frontend "frontend.h")
apl_install_headers(codegen "codegen.h")
apl_install_headers(codegen/emit "kernel_file.h" "library.h" "load.h")
apl_install_headers(runtime/program "program.h")
apl_install_headers(runtime/backends "kernel_stats.h" "toolchain.h")
apl_install_headers(codegen/contraction "plan_data.h")
apl_install_headers(machine/tiles "plan.h" "device_fields.def")
apl_install_headers(machine/target "target.h")
if(TARGET apl_testing)
  install(FILES "${PROJECT_SOURCE_DIR}/tests/testing.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/apl")
  apl_offer_headers("." "${PROJECT_SOURCE_DIR}/tests/testing.h")
endif()
if(TARGET apl_driver)
  install(FILES "${PROJECT_SOURCE_DIR}/aplc/driver_main.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/apl")
  apl_offer_headers("." "${PROJECT_SOURCE_DIR}/aplc/driver_main.h")
endif()
if(TARGET apl_shared)
  install(FILES "${PROJECT_SOURCE_DIR}/capi/apl.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/apl")
  apl_offer_headers("." "${PROJECT_SOURCE_DIR}/capi/apl.h")
endif()
install(CODE "set(APL_INCLUDE_DIR \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/apl\")")
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/public_includes.cmake")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/aplConfig.cmake.in" "${PROJECT_BINARY_DIR}/aplConfig.cmake"
  INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/aplConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/aplConfig.cmake" "${PROJECT_BINARY_DIR}/aplConfigVersion.cmake"
        DESTINATION "${config_dir}")

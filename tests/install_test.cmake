# Installs apl into the build folder and builds the examples in C++ against it, as a user would.
set(example "${PROJECT_SOURCE_DIR}/examples")
file(GLOB example_sources CONFIGURE_DEPENDS "${example}/*/*.cpp")
if(NOT TARGET apl_passes OR NOT example_sources)
  return()
endif()
set(prefix "${PROJECT_BINARY_DIR}/install-test/prefix")
set(example_build "${PROJECT_BINARY_DIR}/install-test/build")
set(example_flags "")
if(APL_SANITIZE)
  set(example_flags "-fsanitize=${APL_SANITIZE}")
endif()

# What an older tree installed is not looked at.
add_test(NAME install/clean COMMAND "${CMAKE_COMMAND}" -E rm -rf "${prefix}")
add_test(NAME install/install
  COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${prefix}")
add_test(NAME install/headers
  COMMAND "${CMAKE_COMMAND}" "-DPREFIX=${prefix}" "-DINCLUDEDIR=${CMAKE_INSTALL_INCLUDEDIR}"
    "-DCOMPILER=${CMAKE_CXX_COMPILER}" -P "${CMAKE_CURRENT_SOURCE_DIR}/installed_headers_test.cmake")
add_test(NAME install/configure
  COMMAND "${CMAKE_COMMAND}" -S "${example}" -B "${example_build}" --fresh -G "${CMAKE_GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}"
    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}"
    "-DCMAKE_CXX_FLAGS=${example_flags}")
add_test(NAME install/build COMMAND "${CMAKE_COMMAND}" --build "${example_build}")
add_test(NAME install/run COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${example_build}" --output-on-failure
  --no-tests=error)

set_tests_properties(install/clean PROPERTIES FIXTURES_SETUP apl_clean)
set_tests_properties(install/install PROPERTIES FIXTURES_REQUIRED apl_clean FIXTURES_SETUP apl_installed)
set_tests_properties(install/headers PROPERTIES FIXTURES_REQUIRED apl_installed)
set_tests_properties(install/configure PROPERTIES FIXTURES_REQUIRED apl_installed FIXTURES_SETUP example_configured)
set_tests_properties(install/build PROPERTIES FIXTURES_REQUIRED example_configured FIXTURES_SETUP example_built)
set_tests_properties(install/run PROPERTIES FIXTURES_REQUIRED example_built)
set_tests_properties(install/clean install/install install/headers install/configure install/build install/run PROPERTIES
  TIMEOUT 180 LABELS install)

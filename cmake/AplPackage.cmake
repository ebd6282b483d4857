# What the program and the libraries have beside them where they are installed: manual pages and completion of shells,
# from aplc itself; a file for pkg-config; highlighting of textual IR.
if(TARGET aplc AND NOT SKBUILD)
  set(manual "${PROJECT_BINARY_DIR}/manual")
  add_custom_command(OUTPUT "${manual}/stamp"
    COMMAND "${CMAKE_COMMAND}" "-DAPLC=$<TARGET_FILE:aplc>" "-DFOLDER=${manual}"
      -P "${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake"
    DEPENDS aplc "${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake" VERBATIM)
  add_custom_target(apl_manual ALL DEPENDS "${manual}/stamp")
  add_dependencies(apl_installed apl_manual)
  install(DIRECTORY "${manual}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
  install(FILES "${manual}/aplc.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME aplc)
  install(FILES "${manual}/_aplc" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${manual}/aplc.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/editors/vim/" DESTINATION "${CMAKE_INSTALL_DATADIR}/vim/vimfiles")
endif()
if(TARGET apl_shared)
  # From the folder of the file to the prefix, so that an installed tree can be moved.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
             OUTPUT_VARIABLE APL_PC_UP)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/apl.pc.in" "${PROJECT_BINARY_DIR}/apl.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/apl.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# `cpack --config build/release/CPackConfig.cmake` makes build/release/apl-compiler_VERSION_ARCHITECTURE.deb: all that is
# installed but what pip installs. What it runs and links with comes from Debian.
if(PROJECT_IS_TOP_LEVEL AND NOT SKBUILD)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME apl-compiler)
  set(CPACK_PACKAGE_VENDOR "The authors of apl")
  set(CPACK_PACKAGE_CONTACT "The authors of apl <apl@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiler for data-parallel array programs, and its passes as libraries")
  set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
  # gcc compiles what aplc writes; the other libraries are in the static ones, and fmt is in their headers.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "gcc, libc6-dev")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
      "g++, cmake, make, pkg-config, doctest-dev, libfmt-dev, libboost-dev, libboost-context-dev, libboost-graph-dev, librange-v3-dev, zlib1g-dev")
  include(CPack)
endif()

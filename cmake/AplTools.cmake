# ccache and lld, where the machine has them.
if(PROJECT_IS_TOP_LEVEL)
  find_program(APL_CCACHE ccache)
  if(APL_CCACHE)
    foreach(language C CXX)
      if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
        # What ccache asks for where headers are precompiled; without looking at preprocessed text, in which a changed comment
        # is no change: then the headers and what was made of them would differ.
        set(CMAKE_${language}_COMPILER_LAUNCHER
            "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 "${APL_CCACHE}")
      endif()
    endforeach()
  endif()

  find_program(APL_LLD ld.lld)
  if(APL_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# Half a gigabyte a compiler before it collects its garbage: 5 % of its time.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=524288")
endif()

if(APL_SANITIZE)
  add_compile_options(-fsanitize=${APL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${APL_SANITIZE})
endif()

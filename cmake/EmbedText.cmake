# apl_embed_text(TARGET FUNCTION FILE [INLINE FILE...]): compiles FILE's text into TARGET as
# `std::string_view apl::FUNCTION()`. The text of an INLINE file stands where FILE includes it.
function(apl_embed_text target function file)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "INLINE")
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE input)
  set(output "${PROJECT_BINARY_DIR}/embedded/${function}.cpp")
  set(inlined ${arg_INLINE})
  list(TRANSFORM inlined PREPEND "${PROJECT_SOURCE_DIR}/")
  string(REPLACE ";" "," names "${arg_INLINE}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DINPUT=${input}" "-DINLINE=${names}" "-DOUTPUT=${output}"
      "-DFUNCTION=${function}" -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS "${input}" ${inlined} "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()

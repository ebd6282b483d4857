# apl_embed_text(TARGET FUNCTION FILE): compiles FILE's text into TARGET as `std::string_view apl::FUNCTION()`.
function(apl_embed_text target function file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE input)
  set(output "${PROJECT_BINARY_DIR}/embedded/${function}.cpp")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}" "-DFUNCTION=${function}" -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS "${input}" "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()

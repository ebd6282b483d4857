# The libraries of others. README.md says what each is for.
set(Boost_USE_STATIC_LIBS ${APL_PORTABLE})
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS context)
find_package(fmt 9 CONFIG REQUIRED)
find_package(range-v3 CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(CLI11 2.1 CONFIG REQUIRED)
find_package(Threads REQUIRED)

# Debian has fmt as a shared library only: a portable build compiles fmt's headers in instead.
set(APL_FMT fmt::fmt)
if(APL_PORTABLE)
  get_target_property(APL_FMT_TYPE fmt::fmt TYPE)
  if(APL_FMT_TYPE STREQUAL "SHARED_LIBRARY")
    set(APL_FMT fmt::fmt-header-only)
  endif()
endif()

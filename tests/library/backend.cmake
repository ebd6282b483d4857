# How libraries of BACKEND are compiled and linked (`flags`, `libraries`), and which CUDA driver they find.
set(libraries -lm)
set(flags -O1 -fopenmp)
if("${BACKEND}" STREQUAL "cuda")
  set(libraries -lm -ldl -lpthread)
  set(flags -O1)
  # The emulated driver, before a real one.
  set(ENV{LD_LIBRARY_PATH} "${DRIVER}")
endif()

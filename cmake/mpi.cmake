# Sets TESSERA_HAS_MPI to whether ranks may be processes that MPI starts, and TESSERA_MPI_INCLUDE and
# TESSERA_MPI_LIBRARY. Only one source uses them, through the interface of C.
set(TESSERA_MPI OFF CACHE STRING
    "Run layers on several processes with MPI: ON, OFF, or AUTO (where Open MPI is found)")
set_property(CACHE TESSERA_MPI PROPERTY STRINGS ON OFF AUTO)
set(TESSERA_HAS_MPI OFF)
if(TESSERA_MPI)
  find_path(TESSERA_MPI_INCLUDE mpi.h
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include PATH_SUFFIXES openmpi)
  find_library(TESSERA_MPI_LIBRARY mpi
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/lib)
  find_program(TESSERA_MPIRUN mpirun)
  if(TESSERA_SANITIZE)
    message(STATUS "no MPI with sanitizers, which do not know what it does: ranks are threads alone")
  elseif(TESSERA_MPI_INCLUDE AND TESSERA_MPI_LIBRARY)
    set(TESSERA_HAS_MPI ON)
  elseif(TESSERA_MPI STREQUAL "AUTO")
    message(STATUS "no MPI: ranks are threads alone, and the tests with mpirun are skipped; missing libopenmpi-dev")
  else()
    message(FATAL_ERROR "TESSERA_MPI=${TESSERA_MPI}, but missing: libopenmpi-dev")
  endif()
endif()

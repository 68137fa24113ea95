# hmc_need(PACKAGE APT-PACKAGE [arguments of find_package...]) finds what the build cannot do without;
# hmc_needs_met() ends with one sentence about everything that was not found, and how to get it.

macro(hmc_need package apt)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    hmc_miss(${package} ${apt})
  endif()
endmacro()

macro(hmc_miss what apt)
  list(APPEND hmc_missing ${what})
  list(APPEND hmc_missing_apt ${apt})
endmacro()

function(hmc_needs_met)
  if(hmc_missing)
    list(JOIN hmc_missing ", " what)
    list(JOIN hmc_missing_apt " " apt)
    message(FATAL_ERROR "HMC needs ${what}: `apt install ${apt}`, or your system's equivalents.")
  endif()
endfunction()

# The Python module: headers of the interpreter, and a pybind11 that knows it.
macro(hmc_need_python)
  hmc_need(Python3 python3-dev 3.8 COMPONENTS Interpreter Development.Module)
  set(hmc_pybind11 2.10)
  foreach(pair 3.12=2.11 3.13=2.13 3.14=3.0)
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 hmc_python)
    if(Python3_FOUND AND Python3_VERSION VERSION_GREATER_EQUAL hmc_python)
      list(GET pair 1 hmc_pybind11)
    endif()
  endforeach()
  hmc_need(pybind11 pybind11-dev ${hmc_pybind11} CONFIG)
  if(Python3_FOUND AND NOT pybind11_FOUND AND pybind11_CONSIDERED_VERSIONS)
    message(FATAL_ERROR "HMC needs pybind11 ${hmc_pybind11} for Python ${Python3_VERSION}, and found "
            "${pybind11_CONSIDERED_VERSIONS}: `pip install pybind11`, then add "
            "-Dpybind11_DIR=$(python3 -m pybind11 --cmakedir).")
  endif()
endmacro()

# hmc_install(): `make install` puts the headers, the library, a CMake package and a pkg-config file
# under the prefix. All of it can be moved afterwards: no file names the prefix.

include(CMakePackageConfigHelpers)

# Installed commands find the installed library next to them.
file(RELATIVE_PATH hmc_lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${hmc_lib_from_bin}")

function(hmc_install)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hmc)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
  install(TARGETS hmc EXPORT hmc-targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS mf_smem LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT hmc-targets NAMESPACE hmc:: DESTINATION ${package_dir})

  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/hmc-config.cmake.in ${PROJECT_BINARY_DIR}/hmc-config.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/hmc-config-version.cmake COMPATIBILITY SameMinorVersion)
  hmc_pkg_config(${PROJECT_BINARY_DIR}/hmc.pc)
  install(FILES ${PROJECT_BINARY_DIR}/hmc-config.cmake ${PROJECT_BINARY_DIR}/hmc-config-version.cmake
          DESTINATION ${package_dir})
  install(FILES ${PROJECT_BINARY_DIR}/hmc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# Who links libhmc.so needs nothing else, not even other packages' .pc files; who links libhmc.a
# needs what it is made with, and asks with `pkg-config --static`.
function(hmc_pkg_config file)
  set(pc_requires "")
  set(pc_libs "")
  if(BUILD_STATIC_LIB)
    set(pc_requires "spdlog fmt libssl libcrypto")
    set(pc_libs "${CMAKE_THREAD_LIBS_INIT} -lstdc++")
    foreach(library ${CMAKE_DL_LIBS})
      string(APPEND pc_libs " -l${library}")
    endforeach()
  endif()
  set(package_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_prefix ${package_dir} ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
  file(RELATIVE_PATH pc_libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
  file(RELATIVE_PATH pc_includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/hmc.pc.in ${file} @ONLY)
endfunction()

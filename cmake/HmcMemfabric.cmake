# hmc_memfabric(): MemFabric's install layout as the component `memfabric`, which only installs when it is
# named, and the target memfabric_run, which packs it into build/mxc-memfabric_hybrid-VERSION_linux_ARCH.run:
#
#   cmake --install build --component memfabric --prefix /usr/local
#   cmake --build build --target memfabric_run
#
#   PREFIX/mxc/memfabric_hybrid/latest                                -> VERSION
#                               set_env.sh
#                               VERSION/ARCH-linux/include/smem       whatever lies in include/smem
#                                                  lib64              libmf_smem.so
#                                                  whl                MemFabric's wheels of build/memfabric-wheel and build/dist
#                                      uninstall.sh, version.info

function(hmc_memfabric)
  set(source ${PROJECT_SOURCE_DIR}/tools/memfabric)
  set(home mxc/memfabric_hybrid)
  set(version_dir ${home}/${PROJECT_VERSION})
  set(platform ${CMAKE_SYSTEM_PROCESSOR}-linux)
  set(work ${PROJECT_BINARY_DIR}/memfabric-package)
  file(WRITE ${work}/version.info
    "name: memfabric_hybrid\nversion: ${PROJECT_VERSION}\nos: linux\narch: ${CMAKE_SYSTEM_PROCESSOR}\nmade by: HMC\n")

  set(part COMPONENT memfabric EXCLUDE_FROM_ALL)
  install(FILES ${source}/set_env.sh DESTINATION ${home} ${part})
  install(FILES ${work}/version.info DESTINATION ${version_dir} ${part})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/smem DESTINATION ${version_dir}/${platform}/include ${part})
  install(TARGETS mf_smem LIBRARY DESTINATION ${version_dir}/${platform}/lib64 ${part})
  foreach(folder memfabric-wheel dist)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/${folder}/ DESTINATION ${version_dir}/${platform}/whl ${part}
            FILES_MATCHING PATTERN "*.whl")
  endforeach()
  # Last: what was installed is what uninstall.sh removes.
  configure_file(${PROJECT_SOURCE_DIR}/cmake/memfabric_layout.cmake.in
    ${work}/layout.cmake @ONLY)
  install(SCRIPT ${work}/layout.cmake ${part})

  set(tree ${work}/tree)
  add_custom_target(memfabric_run
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${tree}
    COMMAND ${CMAKE_COMMAND} -E env --unset=DESTDIR
            ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component memfabric --prefix ${tree} --strip
    COMMAND ${source}/make_run.sh ${tree} ${PROJECT_BINARY_DIR}
    DEPENDS mf_smem VERBATIM)
  # The wheel comes first where this build makes it.
  if(TARGET memfabric_wheel)
    add_dependencies(memfabric_run memfabric_wheel)
  endif()
endfunction()

# Package config: find_package(coldstream) gives the coldstream:: targets, and
# finds what they are linked with.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/coldstream)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/coldstream-config.cmake.in
  ${PROJECT_BINARY_DIR}/coldstream-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/coldstream-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/coldstream-config.cmake
              ${PROJECT_BINARY_DIR}/coldstream-config-version.cmake
        DESTINATION ${package_dir})
install(
  EXPORT coldstream-targets
  NAMESPACE coldstream::
  DESTINATION ${package_dir})
# For C without CMake. Relative to where it lies, so that a prefix may be moved.
if(COLDSTREAM_BUILD_SHARED)
  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH COLDSTREAM_PC_TO_PREFIX /prefix/${pc_dir} /prefix)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/coldstream.pc.in
                 ${PROJECT_BINARY_DIR}/coldstream.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/coldstream.pc DESTINATION ${pc_dir})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/coldstream)

# `cpack` in a build folder makes the .deb of the machine's own architecture; see packaging/README.md.
include_guard(GLOBAL)

install(PROGRAMS $<TARGET_FILE:tandem> DESTINATION bin)  # as linked: Open MPI is found by its run path
install(FILES packaging/tandem.service DESTINATION lib/systemd/system)
install(FILES README.md docs/OPERATIONS.md docs/FAULTS.md DESTINATION share/doc/tandem)

execute_process(COMMAND dpkg --print-architecture OUTPUT_VARIABLE tandem_deb_architecture
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "Tandem maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves DeepSeek-V4-Flash on two machines as one")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE "${tandem_deb_architecture}")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, openssh-client, iproute2")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-server")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/packaging/postinst")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
include(CPack)

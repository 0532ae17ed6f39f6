# cmake --install: the command, the libraries with their headers, and the package files for CMake and pkg-config.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY WEFT_ROOMS)
foreach(room ${rooms})
  string(REGEX REPLACE "^weft_" "" name ${room})
  set_target_properties(${room} PROPERTIES EXPORT_NAME ${name})
endforeach()
# Everything a user needs, and no tests: what ./demo builds.
add_custom_target(weft_programs DEPENDS ${rooms})
if(TARGET weft)
  add_dependencies(weft_programs weft)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(TARGETS ${rooms} weft_hdf5 EXPORT weftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET weft)
  add_executable(weft::weft ALIAS weft)
  install(TARGETS weft EXPORT weftTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/targets DESTINATION ${CMAKE_INSTALL_DATADIR}/weft OPTIONAL)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/WeftAddProgram.cmake DESTINATION ${package_folder})

# Static libraries in link order: a room may use the rooms before it.
set(WEFT_PC_LIBS)
foreach(room ${rooms})
  string(PREPEND WEFT_PC_LIBS " -l${room}")
endforeach()
file(RELATIVE_PATH WEFT_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # wherever it is installed
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Installs what the lock file in WEB says into WORK and copies FILE of it to OUT. A failed download is
# tried once more. If npm still cannot deliver it, OUT is empty, so that a build without a network goes
# on; the next configuration removes an empty file, and the build after it tries again.
file(MAKE_DIRECTORY ${WORK})
foreach(name package.json package-lock.json)
  configure_file(${WEB}/${name} ${WORK}/${name} COPYONLY)
endforeach()
foreach(try RANGE 1 2)
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${WORK}
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why TIMEOUT 120)
  if(NOT failed AND EXISTS ${WORK}/${FILE})
    configure_file(${WORK}/${FILE} ${OUT} COPYONLY)
    return()
  endif()
endforeach()
message(WARNING "npm could not install ${FILE}, tried twice: ${why}")
file(WRITE ${OUT} "")

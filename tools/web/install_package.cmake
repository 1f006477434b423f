# Installs what the lock file in WEB says into WORK and copies FILE of it to OUT; an empty OUT when
# npm cannot deliver it, so that a build without a network goes on.
file(MAKE_DIRECTORY ${WORK})
foreach(name package.json package-lock.json)
  configure_file(${WEB}/${name} ${WORK}/${name} COPYONLY)
endforeach()
execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why TIMEOUT 120)
if(failed OR NOT EXISTS ${WORK}/${FILE})
  message(WARNING "npm could not install ${FILE}: ${why}")
  file(WRITE ${OUT} "")
else()
  configure_file(${WORK}/${FILE} ${OUT} COPYONLY)
endif()

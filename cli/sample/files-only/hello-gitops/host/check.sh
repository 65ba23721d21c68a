#!/bin/sh
# The health check of hello: the platform's configuration must contain a greeting. It runs in the agent's root folder.
. ./etc/kedge/workloads/hello-@TARGET@/platform-config.env
if [ -z "$GREETING" ]; then
    echo "nobody is greeted: GREETING is empty"
    exit 1
fi

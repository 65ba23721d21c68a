#!/bin/sh
# The health check of hello: the platform's configuration has a greeting. It runs in the folder that is the agent's root.
. ./etc/kedge/workloads/hello-@TARGET@/platform-config.env
if [ -z "$GREETING" ]; then
    echo "nobody is greeted: GREETING is empty"
    exit 1
fi

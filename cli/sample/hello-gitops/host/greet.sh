#!/bin/sh
# Greets into the journal once a minute; the unit brings the platform's configuration.
while true; do
    hello --greeting="$GREETING ($ENVIRONMENT, $REGION)"
    sleep 60
done

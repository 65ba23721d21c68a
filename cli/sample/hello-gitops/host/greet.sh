#!/bin/sh
# Writes the greeting to the journal once a minute; the unit provides the platform's configuration.
while true; do
    hello --greeting="$GREETING ($ENVIRONMENT, $REGION)"
    sleep 60
done

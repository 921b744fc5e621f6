#!/bin/sh
# The browser of the login test: opens the address, fills in Dex's form, and follows where it leads.
# SLIPWAY_TEST_FOLDER is a folder of its own, with the form's fields in `login` and `password`.
set -eu
jar=$SLIPWAY_TEST_FOLDER/cookies
browse() { curl --silent --show-error --insecure --noproxy '*' --location --cookie "$jar" --cookie-jar "$jar" "$@"; }
form=$(browse --output /dev/null --write-out '%{url_effective}' "$1")
browse --output /dev/null --data-urlencode "login@$SLIPWAY_TEST_FOLDER/login" \
  --data-urlencode "password@$SLIPWAY_TEST_FOLDER/password" "$form"

#!/usr/bin/env bash
# Makes a key and tokens with which config/envoy/jwt.yaml can be tried, in place of an issuer's. It needs openssl.
#
#   hack/jwt.sh key DIR             a new key: DIR/key.pem, and DIR/jwks.json for Envoy
#   hack/jwt.sh token KEY SUBJECT   a token of the subject on standard output, signed with the key, valid for an hour
#
# The issuer and the audience are those that jwt.yaml names.
set -euo pipefail

readonly issuer=https://issuer.example audience=inference

usage() {
  sed -n 's/^# \{0,1\}//;2,7p' "$0" >&2
  exit 2
}

# base64url encodes standard input as tokens have it.
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# modulus prints that of the RSA key $1, as bytes.
modulus() {
  local hex
  hex=$(openssl rsa -in "$1" -noout -modulus | cut -d= -f2)
  # shellcheck disable=SC2059 # the format is the bytes
  printf "$(sed 's/../\\x&/g' <<<"${hex}")"
}

case "${1-}" in
key)
  [[ $# -eq 2 ]] || usage
  (umask 077 && openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$2/key.pem" 2>/dev/null)
  printf '{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","e":"AQAB","n":"%s"}]}\n' "$(modulus "$2/key.pem" | base64url)" \
    >"$2/jwks.json"
  ;;
token)
  [[ $# -eq 3 ]] || usage
  now=$(date +%s)
  unsigned=$(printf '{"alg":"RS256","typ":"JWT"}' | base64url).$(
    printf '{"iss":"%s","aud":"%s","sub":"%s","iat":%d,"exp":%d}' "${issuer}" "${audience}" "$3" "${now}" "$((now + 3600))" | base64url
  )
  printf '%s.%s\n' "${unsigned}" "$(printf %s "${unsigned}" | openssl dgst -sha256 -sign "$2" -binary | base64url)"
  ;;
*) usage ;;
esac

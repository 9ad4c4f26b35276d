# The endpoint picker, and weir beside it, in a minimal image: static binaries, no shell, not root.
#
#   docker build -t weir --build-arg VERSION=$(git describe --tags --always --dirty) .
#   docker run --rm -p 9002:9002 -p 9003:9003 -p 9090:9090 weir --endpoints=10.0.0.1:8000 --secure-serving=false
#   docker run --rm -v $PWD:/etc/weir --entrypoint /usr/local/bin/weir weir config validate /etc/weir/weir.yaml
#
# BUILD_IMAGE needs at least the Go version of go.mod; BASE_IMAGE may be empty, even "scratch" will do.
ARG BUILD_IMAGE=golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY config config
COPY internal internal
COPY pkg pkg
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath \
    -ldflags "-s -w -X github.com/weir-epp/weir/internal/version.Version=${VERSION}" \
    -o /out/ ./cmd/epp ./cmd/weir

FROM ${BASE_IMAGE}
COPY --from=build /out/epp /out/weir /usr/local/bin/
# By number, so that an orchestrator can see that it is not root.
USER 65532:65532
# ext_proc for Envoy, gRPC health, metrics.
EXPOSE 9002 9003 9090
ENTRYPOINT ["/usr/local/bin/epp"]

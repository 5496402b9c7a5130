# The programs of Events V2 in one image: /worker (default), /cron and /eventctl.
#
#   docker build -t eventsv2 --build-arg VERSION=v0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#   docker run --rm -e DATABASE_URL=… eventsv2                    # the worker
#   docker run --rm --entrypoint /eventctl eventsv2 --help
#
# The health check of a container is a sub-command of its program: ["/worker", "health"], ["/cron", "health", "--ready"].
#
# It needs nothing of BuildKit, so that every builder can build it. GO_IMAGE may
# name any image with Go and CA certificates; test/images/ makes one from the
# machine's own toolchain where none can be pulled.
ARG GO_IMAGE=golang:1.26.11

FROM ${GO_IMAGE} AS build
# Where modules come from, for networks that have a proxy of their own.
ARG GOPROXY
WORKDIR /src
# The modules change less often than the code, so they get a layer of their own.
# It holds those that only tests need, too; if one of them cannot be had, that is
# not the image's problem, and the build below says so if it is.
COPY go.mod go.sum ./
RUN go mod download || echo "not every module was to be had; going on"
COPY . .
# One binary is all programs, by the name that it is called by: each would have most of the others in it.
# The build cache would only make the layer large: no later build can use it.
# timetzdata: cron definitions name time zones, and an empty image has none.
# The build context has no .git: the arguments say what --version prints.
ARG VERSION=dev
ARG REVISION=unknown
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags timetzdata \
    -ldflags "-s -w -X $(go list -m)/internal/buildinfo.version=$VERSION -X $(go list -m)/internal/buildinfo.revision=$REVISION" \
    -o /out/ ./cmd/eventsv2 \
 && ln -s eventsv2 /out/worker && ln -s eventsv2 /out/cron && ln -s eventsv2 /out/eventctl \
 && go clean -cache

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="eventsv2" \
      org.opencontainers.image.description="Durable background events on Postgres, notified by Google Cloud Pub/Sub" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ /
# Not root, and no name for it: an empty image has no list of users.
USER 65532:65532
# What PORT is unless the environment says otherwise.
ENV PORT=8080
EXPOSE 8080
# exec form: the program is process 1 and gets SIGTERM itself.
ENTRYPOINT ["/worker"]

# Waypost as a container image: "docker build -t waypost .". How it is run: compose.yaml and docs/operations.md.

# The newest Node 24 of the day on which it is built.
# Debian and not Alpine, because what is tested is glibc.
ARG NODE_IMAGE=node:24-slim

# Compiles the sources and builds the console. Nothing else of this stage gets into the image.
FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.ts scripts/build-console.ts scripts/console-types.ts scripts/declarations.ts scripts/docs-page.ts scripts/
COPY console console/
COPY src src/
RUN node scripts/build.ts

# What the server needs when it runs; the optional packages are for "waypost demo" alone.
FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
RUN install -d -m 700 -o 1000 -g 1000 /data && ln -s /app/bin/waypost.js /usr/local/bin/waypost
WORKDIR /app
COPY package.json LICENSE ./
COPY bin bin/
COPY deploy/container/health-check.js ./
COPY --from=packages /app/node_modules node_modules/
COPY --from=build /build/dist dist/
ENV NODE_ENV=production WAYPOST_HOST=0.0.0.0 WAYPOST_DATA_DIR=/data
# The user "node" of the base image, by number, so that a cluster can see that it is not root. What is in /app belongs to
# root: the server can change nothing but /data, and the root file system may be read-only.
USER 1000:1000
VOLUME /data
EXPOSE 8080
# The first signal drains: give the container longer than WAYPOST_DRAIN_LIMIT before it is killed.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "/app/health-check.js"]
ENTRYPOINT ["node", "/app/bin/waypost.js"]
CMD ["serve"]

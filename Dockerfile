# The service as an image. It runs the sources as they are: there is no build step.
# To pin what is built from, add its digest: node:24.21.0-slim@sha256:… (docker buildx imagetools inspect node:24.21.0-slim).
FROM node:24.21.0-slim

ENV NODE_ENV=production
WORKDIR /app

COPY package.json package-lock.json ./
# The image brings Node, so the runtime packages among the optional dependencies are left out. sbom.cdx.json lists the others.
RUN npm ci --ignore-scripts --omit=dev --omit=optional && npm sbom --package-lock-only --sbom-format cyclonedx --omit dev --omit optional >sbom.cdx.json && npm cache clean --force

COPY gen gen
COPY README.md ./
COPY docs docs
COPY src src

RUN mkdir /data && chown node:node /data
USER node
ENV DATA_DIR=/data
VOLUME /data
EXPOSE 8080 8081
HEALTHCHECK CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=16", "src/main.ts"]

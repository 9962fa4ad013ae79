# PostgreSQL with Patroni, from Debian's packages, for compose.ha.yaml.
# To pin what is built from, add its digest: debian:12.12-slim@sha256:…
FROM debian:12.12-slim
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql patroni python3-etcd \
  && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/*
COPY patroni.yaml /etc/patroni/config.yml
COPY roles.sql /etc/patroni/roles.sql
USER postgres
EXPOSE 5432 8008
# Patroni reads passwords from its environment alone.
CMD ["sh", "-euc", "export PATRONI_SUPERUSER_PASSWORD=\"$(cat /run/secrets/postgres_password)\" PATRONI_REPLICATION_PASSWORD=\"$(cat /run/secrets/replication_password)\"; exec patroni /etc/patroni/config.yml"]

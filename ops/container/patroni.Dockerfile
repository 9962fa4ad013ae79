# PostgreSQL with Patroni, from Debian's packages, for compose.ha.yaml.
FROM debian:12-slim
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql patroni python3-etcd \
  && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/*
COPY patroni.yaml /etc/patroni/config.yml
USER postgres
EXPOSE 5432 8008
CMD ["patroni", "/etc/patroni/config.yml"]

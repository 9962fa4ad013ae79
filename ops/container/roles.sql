-- The service's own role and database, which an image of PostgreSQL makes on its first start. The role owns the database
-- and may do nothing beyond it.
\set password `cat /run/secrets/database_password`
create role forms login password :'password';
create database forms owner forms;
revoke connect on database forms from public;
-- Else standbys wait for minutes until what this has made is on the disk.
checkpoint;

-- Books as gpubrokerd wrote them in version 1, with one lease whose machine exists at the provider "good".
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lease (number INTEGER PRIMARY KEY, owner TEXT NOT NULL, name TEXT, ended INTEGER NOT NULL,
                    ended_ms INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE INDEX lease_ended ON lease (ended, number);
CREATE INDEX lease_name ON lease (owner, name) WHERE name IS NOT NULL;
CREATE TABLE attempt (lease INTEGER NOT NULL, number INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (lease, number))
  WITHOUT ROWID;
CREATE TABLE op (number INTEGER PRIMARY KEY, lease INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT,
                 running INTEGER NOT NULL, ended_ms INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE UNIQUE INDEX op_key ON op (owner, key) WHERE key IS NOT NULL;
CREATE INDEX op_lease ON op (lease);
CREATE INDEX op_running ON op (running) WHERE running = 1;
CREATE TABLE event (seq INTEGER PRIMARY KEY, ms INTEGER NOT NULL, lease INTEGER NOT NULL, topic TEXT NOT NULL,
                    body TEXT NOT NULL);
CREATE INDEX event_lease ON event (lease, seq);
CREATE TABLE log (id INTEGER PRIMARY KEY, lease INTEGER NOT NULL, ms INTEGER NOT NULL, step TEXT NOT NULL,
                  text TEXT NOT NULL);
CREATE INDEX log_lease ON log (lease, id);
INSERT INTO meta VALUES ('instance', '6b1f3a52-0d0c-4b5e-9a35-1c9d7c1f0e11');
INSERT INTO lease VALUES (1, 'tester', 'old', 0, 0,
  '{"number":1,"name":"old","owner":"tester","cluster":"none","request":{},"created_ms":1,"keep_ms":1,"state":"failed-kept"}');
INSERT INTO attempt VALUES (1, 1,
  '{"number":1,"wanted":true,"billed":true,"provider":"good","token":"t1","name":"gpub-6b1f-l1-1","price_udollar":5,"started_ms":1,"created_ms":1,"machine":{"id":"m1"},"state":"created"}');
PRAGMA user_version = 1;

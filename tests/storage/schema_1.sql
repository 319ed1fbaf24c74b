BEGIN TRANSACTION;
CREATE TABLE cards (
	session INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	item TEXT NOT NULL, 
	draw INTEGER, 
	propensity DOUBLE, 
	purpose TEXT, 
	why TEXT, 
	reserved_for TEXT, 
	closed BOOLEAN NOT NULL, 
	leased_to TEXT, 
	leased_until DOUBLE, 
	PRIMARY KEY (session, number), 
	FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO "cards" VALUES(1,1,'"a"',1,0.25,NULL,'"It is uncertain."',NULL,1,'"ann"',1.79478829965098357201e+09);
INSERT INTO "cards" VALUES(1,2,'["b", 2]',2,0.5,NULL,'"It is uncertain."',NULL,0,NULL,NULL);
CREATE TABLE events (
	session INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	item TEXT NOT NULL, 
	truth TEXT, 
	who TEXT, 
	propensity DOUBLE, 
	at DOUBLE NOT NULL, 
	seconds DOUBLE, 
	blind BOOLEAN, 
	draw INTEGER, 
	"key" TEXT, 
	card INTEGER, 
	opinion INTEGER, 
	purpose TEXT, 
	text TEXT, 
	why TEXT, 
	shown TEXT, 
	saw_estimate BOOLEAN, 
	PRIMARY KEY (session, number), 
	FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES(1,1,'ask','"a"',NULL,NULL,0.25,1.79478799955599308014e+09,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,'"It is uncertain."',NULL,NULL);
INSERT INTO "events" VALUES(1,2,'ask','["b", 2]',NULL,NULL,0.5,1.79478799955599308014e+09,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,'"It is uncertain."',NULL,NULL);
INSERT INTO "events" VALUES(1,3,'tell','"a"','"yes"','"ann"',0.25,1.79478799969898176193e+09,2.5,1,1,'"k1"',1,1,NULL,NULL,NULL,'["no", "yes"]',0);
INSERT INTO "events" VALUES(1,4,'later','["b", 2]',NULL,'"ann"',0.5,1.79478799975200891495e+09,NULL,NULL,2,'"k2"',2,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(1,5,'comment','"a"',NULL,'"bob"',0.25,1.79478799978399419785e+09,NULL,NULL,1,'"k3"',1,NULL,NULL,'"Sure?"',NULL,NULL,NULL);
INSERT INTO "events" VALUES(1,6,'correct','"a"','"no"','"ann"',0.25,1.79478799980499601364e+09,NULL,NULL,1,'"k4"',1,1,NULL,NULL,NULL,NULL,1);
CREATE TABLE grants (
	digest TEXT NOT NULL, 
	session INTEGER NOT NULL, 
	who TEXT NOT NULL, 
	role TEXT NOT NULL, 
	use TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	expires DOUBLE NOT NULL, 
	used DOUBLE, 
	revoked DOUBLE, 
	PRIMARY KEY (digest), 
	FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO "grants" VALUES('digest',1,'"ann"','expert','link',1.79478799982800936699e+09,1.00179478799982800293e+12,NULL,NULL);
CREATE TABLE sessions (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	options TEXT NOT NULL, 
	fingerprints TEXT NOT NULL, 
	source TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	paused BOOLEAN NOT NULL, 
	n_events INTEGER NOT NULL, 
	n_draws INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "sessions" VALUES(1,'"q3"','active test','{"metric": "accuracy"}','{"floor": 0.5}','{"votes": "abc"}','{"files": {}}',1.79478799952799081802e+09,0,6,2);
CREATE TABLE trueup_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT trueup_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "trueup_schema" VALUES('1');
CREATE UNIQUE INDEX events_key ON events (session, "key");
CREATE INDEX events_item ON events (session, item);
CREATE INDEX events_card ON events (session, card);
CREATE INDEX cards_item ON cards (session, item);
CREATE INDEX cards_open ON cards (session, number) WHERE NOT closed;
CREATE UNIQUE INDEX cards_one_each ON cards (session, leased_to) WHERE NOT closed AND leased_to IS NOT NULL;
CREATE INDEX grants_session ON grants (session);
COMMIT;

-- A durtui store: the durable half of one lane, or of a service that uses run_job.
--
-- A job is queued, claimed by a worker (running), and ends finished, lost or dead_lettered; a delivery that fails puts
-- it back at the end of the queue while it has deliveries left. A design with checkpoints writes one row for each step
-- that is done, and a later delivery starts behind the last one. A guarded effect records its key before it acts.
--
-- Every change of state is one statement in autocommit mode, thus one transaction: what a caller was told has happened
-- survives the death of the process. (Only the loss of power can take back an acknowledged transaction, and only with
-- synchronous = off or normal.)
--
-- Keys of checkpoints and effects are packed, job * 256 + step: a commit then writes two pages, where a compound key in
-- a rowid table would write four. The generated columns show job and step to a person at the sqlite3 prompt.
--
-- What the world saw (calls billed, emails delivered) is not in here: see ledger.py.

CREATE TABLE jobs (
    id          INTEGER PRIMARY KEY,
    state       TEXT    NOT NULL DEFAULT 'queued'
                CHECK (state IN ('queued', 'running', 'finished', 'lost', 'dead_lettered')),
    ticket      INTEGER NOT NULL,            -- place in the queue; a redelivered job draws a new one, behind all others
    deliveries  INTEGER NOT NULL DEFAULT 0   -- times a worker has claimed it
) STRICT;

CREATE INDEX queue ON jobs (ticket) WHERE state = 'queued';

CREATE TABLE job_names (                     -- jobs of run_job have a name; a lab's jobs have a number only
    name  TEXT    PRIMARY KEY,
    job   INTEGER NOT NULL REFERENCES jobs (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
    id      INTEGER PRIMARY KEY,
    output  BLOB    NOT NULL,
    job     INTEGER GENERATED ALWAYS AS (id >> 8)  VIRTUAL,
    step    INTEGER GENERATED ALWAYS AS (id & 255) VIRTUAL
) STRICT;

CREATE TABLE effect_keys (
    id       INTEGER PRIMARY KEY,
    attempt  INTEGER NOT NULL,               -- which attempt at the step recorded it, from 0
    job      INTEGER GENERATED ALWAYS AS (id >> 8)  VIRTUAL,
    step     INTEGER GENERATED ALWAYS AS (id & 255) VIRTUAL
) STRICT;

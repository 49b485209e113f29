-- What the last commit left in a stream: its mark, combined with the version that it gave the stream. A writer that lost
-- the answer to a commit finds its mark here, or does not. A later write gives another version, so no mark outlives its
-- commit, even if the writer is of a release that leaves no marks.
ALTER TABLE streams ADD COLUMN mark bigint NOT NULL DEFAULT 0;

-- Makes a commit in one round trip: looks with locks, and writes if everything is as its writer saw it. Streams, blobs and
-- leases are locked in this order, and each in the order of their keys; streams that are made meet others that make them in
-- the order of their names. So no two commits wait for each other.
--
-- A commit that does not fit writes nothing and returns one row, which says why, and which item it was (from 1). One that is
-- made returns a row for each write.
CREATE FUNCTION write_commit(
    commit_mark    bigint,
    is_relaxed     boolean,
    -- The writes. One without a head has nulls.
    ids            text[],
    expected       bigint[],
    kinds          text[],
    statuses       text[],
    bodies         bytea[],
    event_counts   bigint[],
    -- The events: the write of each, and which of its events it is, both from 1.
    event_writes   int[],
    event_places   bigint[],
    event_kinds    text[],
    event_bodies   bytea[],
    -- What the events refer to, and the heads, which stand at place 0.
    blob_writes    int[],
    blob_places    bigint[],
    blob_positions bigint[],
    blob_ids       bytea[],
    lease_keys     text[],
    lease_tokens   bigint[]
) RETURNS TABLE (misfit text, item bigint, made_life bigint, made_version bigint, made_last bigint, made_at_ms bigint)
LANGUAGE plpgsql
-- Planned once for each connection, because planning takes longer than the rest. The plan is often made while the tables are
-- empty, and then has to be good for full ones: every row is found by its key.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    lives    bigint[];
    lasts    bigint[];
    new_versions bigint[];
    now_ms   bigint;
    stale    bigint;
    missing  bigint;
    fenced   bigint;
BEGIN
    IF is_relaxed THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;

    -- A stream that is not at the version that the writer saw never comes back to it. So it is left out, and those who
    -- lost a race need not wait in line to learn it.
    WITH locked AS MATERIALIZED (
        SELECT id, number, streams.version, last_sequence
        FROM streams
        WHERE id = ANY (ids) AND expected[array_position(ids, id)] IN (0, streams.version)
        ORDER BY id FOR UPDATE
    )
    SELECT array_agg(number ORDER BY place), array_agg(coalesce(last_sequence, 0) ORDER BY place),
        min(place) FILTER (WHERE coalesce(locked.version, 0) <> seen.version)
    INTO lives, lasts, stale
    FROM unnest(ids, expected) WITH ORDINALITY AS seen (id, version, place) LEFT JOIN locked USING (id);

    -- Collection deletes a blob only if it can lock it, and looks for references after that.
    IF cardinality(blob_ids) > 0 THEN
        WITH locked AS MATERIALIZED (
            SELECT id FROM blobs WHERE id = ANY (blob_ids) ORDER BY id FOR KEY SHARE
        )
        SELECT min(place) INTO missing
        FROM unnest(blob_ids) WITH ORDINALITY AS named (id, place) LEFT JOIN locked USING (id)
        WHERE locked.id IS NULL;
    END IF;

    -- The lock keeps others from taking the lease before the commit is made. The time is taken after the lock.
    IF cardinality(lease_keys) > 0 THEN
        WITH locked AS MATERIALIZED (
            SELECT key, token, expires_at FROM leases WHERE key = ANY (lease_keys) ORDER BY key FOR SHARE
        ), held AS MATERIALIZED (
            SELECT key, token FROM locked WHERE expires_at > clock_timestamp()
        )
        SELECT min(place) INTO fenced
        FROM unnest(lease_keys, lease_tokens) WITH ORDINALITY AS named (key, token, place) LEFT JOIN held USING (key, token)
        WHERE held.key IS NULL;
    END IF;

    IF fenced IS NOT NULL OR stale IS NOT NULL OR missing IS NOT NULL THEN
        RETURN QUERY SELECT
            CASE WHEN fenced IS NOT NULL THEN 'fenced' WHEN stale IS NOT NULL THEN 'stale' ELSE 'blob missing' END,
            coalesce(fenced, stale, missing), NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;

    -- Versions are drawn while the streams are locked, so that they grow along each stream. The first version of a stream
    -- is its number too.
    new_versions := ARRAY(SELECT nextval('versions') FROM generate_series(1, cardinality(ids)));
    now_ms := extract(epoch FROM clock_timestamp()) * 1000;
    IF array_position(expected, 0::bigint) IS NOT NULL THEN
        INSERT INTO streams (number, id, kind, status, version, first_sequence, last_sequence, body, mark)
        SELECT new.version, new.id, new.kind, new.status, new.version, 1, new.events, new.body, commit_mark # new.version
        FROM unnest(expected, ids, kinds, statuses, bodies, new_versions, event_counts)
            AS new (seen, id, kind, status, body, version, events)
        WHERE new.seen = 0 ORDER BY new.id;
    END IF;
    UPDATE streams SET version = new.version, last_sequence = streams.last_sequence + new.events,
        kind = coalesce(new.kind, streams.kind), status = coalesce(new.status, streams.status),
        body = coalesce(new.body, streams.body), mark = commit_mark # new.version
    FROM unnest(lives, kinds, statuses, bodies, new_versions, event_counts)
        AS new (life, kind, status, body, version, events)
    WHERE streams.number = ANY (lives) AND streams.number = new.life;
    DELETE FROM blob_references WHERE sequence = 0 AND stream = ANY (ARRAY(
        SELECT life FROM unnest(lives, bodies) AS new (life, body) WHERE life IS NOT NULL AND body IS NOT NULL
    ));

    lives := ARRAY(
        SELECT coalesce(life, new_version) FROM unnest(lives, new_versions) WITH ORDINALITY AS new (life, new_version, place)
        ORDER BY place
    );
    INSERT INTO events (stream, sequence, at_ms, kind, body)
    SELECT lives[write], lasts[write] + place, now_ms, new.kind, new.body
    FROM unnest(event_writes, event_places, event_kinds, event_bodies) AS new (write, place, kind, body);
    IF cardinality(blob_ids) > 0 THEN
        INSERT INTO blob_references (stream, sequence, position, blob)
        SELECT lives[write], CASE WHEN place = 0 THEN 0 ELSE lasts[write] + place END, new.position, new.blob
        FROM unnest(blob_writes, blob_places, blob_positions, blob_ids) AS new (write, place, position, blob);
    END IF;
    RETURN QUERY SELECT NULL::text, place, life, version, last + events, now_ms
    FROM unnest(lives, new_versions, lasts, event_counts) WITH ORDINALITY AS made (life, version, last, events, place)
    ORDER BY place;
END
$$;

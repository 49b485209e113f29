//! Statements that run often, prepared once per connection.

use tokio_postgres::{Client, Error, Statement};

macro_rules! statements {
    ($($name:ident = $sql:expr;)+) => {
        /// Prepared statements of one connection.
        pub(super) struct Statements {
            $(pub(super) $name: Statement,)+
        }

        impl Statements {
            /// Prepares all of them in one round trip.
            pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
                let ($($name,)+) = tokio::try_join!(biased; $(client.prepare($sql)),+)?;
                Ok(Self { $($name),+ })
            }
        }
    };
}

/// The columns for `read::head_of_row`.
macro_rules! head_columns {
    () => {
        "id, kind, status, version, last_sequence, body,
         ARRAY(SELECT blob FROM blob_references
               WHERE stream = number AND sequence = 0 ORDER BY position)"
    };
}
pub(super) use head_columns;

statements! {
    // Commits. The work is done by a function in the schema.
    write_commit = "
        SELECT misfit, item, made_life, made_version, made_last, made_at_ms
        FROM write_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

    // Restores.
    insert_events = "
        INSERT INTO events (stream, sequence, at_ms, kind, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[])";
    refer_to_blobs = "
        INSERT INTO blob_references (stream, sequence, position, blob)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])";

    // Removals. Streams are locked in the same way as by a commit.
    lock_streams = "
        SELECT id, number, streams.version
        FROM streams JOIN unnest($1::text[], $2::bigint[]) AS seen (id, version) USING (id)
        WHERE streams.version = seen.version OR seen.version = 0
        ORDER BY id FOR UPDATE OF streams";
    // What is left of the streams is dropped later.
    remove_streams = "
        WITH removed AS (DELETE FROM streams WHERE number = ANY($1::bigint[]) RETURNING number)
        INSERT INTO removed_streams (number) SELECT number FROM removed";

    // Hints, in a transaction of their own that doesn't wait for the disk. A transaction that notifies blocks all
    // others in the whole server that do so until it has ended, and a commit must not do that while it is written
    // to disk.
    notify = "
        SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, payload)
        FROM unnest($2::text[]) AS payload";
    // The same about streams that a commit has just written, if it has. Each goes into the payload with its
    // number.
    notify_written = "
        SELECT set_config('synchronous_commit', 'off', true),
            pg_notify($1, string_agg(number || ' ' || last_sequence || ' ' || id, E'\\n'))
        FROM unnest($2::text[], $3::int[]) AS told (id, payload) JOIN streams USING (id)
        WHERE mark = $4::bigint # version GROUP BY payload";

    // Reads. Each is one statement, and so sees one snapshot.
    head = concat!("SELECT ", head_columns!(), " FROM streams WHERE id = $1");
    oldest_by_kind = concat!(
        "SELECT ", head_columns!(), " FROM streams WHERE kind = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    oldest_by_status = concat!(
        "SELECT ", head_columns!(), " FROM streams
         WHERE kind = $1 AND status = $4 AND id > $2 ORDER BY id LIMIT $3"
    );
    newest_by_kind = concat!(
        "SELECT ", head_columns!(), " FROM streams WHERE kind = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    );
    newest_by_status = concat!(
        "SELECT ", head_columns!(), " FROM streams
         WHERE kind = $1 AND status = $4 AND id < $2 ORDER BY id DESC LIMIT $3"
    );
    recently_changed = concat!(
        "SELECT ", head_columns!(), " FROM streams WHERE number IN (
            SELECT number FROM (
                SELECT number, version FROM streams WHERE kind = $1 ORDER BY id DESC LIMIT $2
            ) AS newest ORDER BY version DESC LIMIT $3
         ) ORDER BY version DESC"
    );
    read = "
        SELECT first_sequence, last_sequence, number, sequence, at_ms, kind, body
        FROM (SELECT number, first_sequence, last_sequence FROM streams WHERE id = $1) AS stream
        LEFT JOIN LATERAL (
            SELECT sequence, at_ms, kind, body FROM events
            WHERE stream = number AND sequence > $2 ORDER BY sequence LIMIT $3
        ) AS event ON true
        ORDER BY sequence";
    // The positions of some streams, and their newest events after a position, as many as a window holds. A
    // position counts in the stream with its number.
    newest = "
        SELECT id, number, last_sequence, sequence, at_ms, newest.kind, newest.body
        FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS told (id, life, after)
        JOIN streams USING (id)
        LEFT JOIN LATERAL (
            SELECT *, sum(octet_length(body)) OVER (ORDER BY sequence DESC) AS bytes
            FROM (
                SELECT sequence, at_ms, kind, body FROM events
                WHERE stream = number AND sequence > CASE WHEN number = life THEN after ELSE 0 END
                ORDER BY sequence DESC LIMIT $4::bigint
            ) AS event
        ) AS newest ON bytes <= $5::bigint
        ORDER BY id, sequence";

    // Leases. An expired row means that the key is free.
    offer_lease = "
        INSERT INTO leases (key, owner, token, expires_at) VALUES ($1, '', 0, '-infinity')
        ON CONFLICT (key) DO NOTHING";
    take_lease = "
        UPDATE leases SET owner = $2, token = nextval('versions'),
            expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
        WHERE key = $1 AND expires_at <= clock_timestamp() RETURNING token";
    holder = "
        SELECT owner, (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint
        FROM leases WHERE key = $1 AND expires_at > clock_timestamp()";
    renew_lease = "
        UPDATE leases SET expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
        WHERE key = $1 AND token = $2 AND expires_at > clock_timestamp()";
    release_lease = "
        DELETE FROM leases WHERE key = $1 AND token = $2 AND expires_at > clock_timestamp()";

    // Blobs.
    begin_upload = "
        INSERT INTO uploads (expires_at) VALUES (clock_timestamp() + $1::bigint * interval '1 microsecond')
        RETURNING number";
    put_chunk = "
        INSERT INTO chunks (upload, number, content)
        SELECT number, $2, $3 FROM uploads
        WHERE number = $1 AND expires_at > clock_timestamp() FOR KEY SHARE
        ON CONFLICT (upload, number) DO UPDATE SET content = excluded.content";
    take_upload = "DELETE FROM uploads WHERE number = $1 AND expires_at > clock_timestamp()";
    count_chunks = "SELECT count(*), coalesce(max(number) + 1, 0) FROM chunks WHERE upload = $1";
    make_blob = "
        INSERT INTO blobs (id, upload, size_bytes, stored_bytes, chunks, pinned_until)
        VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6::bigint * interval '1 microsecond')
        ON CONFLICT (id) DO UPDATE SET pinned_until = greatest(blobs.pinned_until, excluded.pinned_until)";
    drop_if_there_already = "
        DELETE FROM chunks
        WHERE upload = $1 AND NOT EXISTS (SELECT FROM blobs WHERE blobs.upload = $1)";
    blob_info = "SELECT size_bytes, stored_bytes, chunks FROM blobs WHERE id = $1";
    blob_chunk = "
        SELECT content FROM chunks JOIN blobs USING (upload) WHERE blobs.id = $1 AND chunks.number = $2";
}

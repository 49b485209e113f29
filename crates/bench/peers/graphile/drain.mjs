// graphile-worker as a peer of `jobs`: jobs that do nothing, added in bulk and then drained.
// It prints nanoseconds for each job, one number to a line: to add it, and to drain it.

import worker from "graphile-worker";

const [connectionString, jobsText, workersText] = process.argv.slice(2);
const jobs = Number(jobsText);
const concurrentJobs = Number(workersText);
const logger = new worker.Logger(() => () => {});

const utils = await worker.makeWorkerUtils({ connectionString, logger });
await utils.migrate();
const began = process.hrtime.bigint();
await utils.withPgClient((client) =>
  client.query(
    `SELECT graphile_worker.add_jobs(ARRAY(
       SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object(
         'identifier', 'no_op', 'payload', json_build_object('number', number)))
       FROM generate_series(1, $1::int) AS number))`,
    [jobs],
  ),
);
const submitted = process.hrtime.bigint();

let left = jobs;
let tell;
const allRan = new Promise((resolve) => (tell = resolve));
const runner = await worker.run({
  connectionString,
  concurrency: concurrentJobs,
  noHandleSignals: true,
  logger,
  taskList: {
    no_op: async () => {
      left -= 1;
      if (left === 0) tell();
    },
  },
});
await allRan;
const drained = process.hrtime.bigint();
console.log(Number(submitted - began) / jobs);
console.log(Number(drained - submitted) / jobs);
await runner.stop();
await utils.release();

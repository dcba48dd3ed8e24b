// Runs `tandem eval` against a server that solves every task, and against servers that are wrong in one way.
// Usage: node eval_test.mjs TANDEM
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvalServer } from './eval_server.mjs';

const tandem = process.argv[2];
const folder = mkdtempSync(join(tmpdir(), 'eval-'));
let failed = 0;
const expect = (ok, what) => {
  if (!ok) {
    ++failed;
    console.log(`FAILED: ${what}`);
  }
};

async function start(...words) {
  const child = spawn(tandem, ['eval', ...words]);
  let text = '';
  child.stdout.on('data', (d) => (text += d));
  child.stderr.on('data', (d) => (text += d));
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, text };
}

async function evaluate(fault, ...flags) {
  const server = new EvalServer(fault);
  const url = await server.listen();
  const file = join(folder, `${fault}.json`);
  const { code, text } = await start(url, '--questions', '8', '--context', '200,600', '--json', file, ...flags);
  server.close();
  return { code, text, lengths: server.lengths, report: existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null };
}

// A recorded answer of one token, in the form of the official vectors.
const vectors = join(folder, 'vectors');
mkdirSync(vectors);
writeFileSync(join(vectors, 'manifest.json'), JSON.stringify({ model: 'recorded', prompts: [{ id: 'p', official_file: 'p.json' }] }));
writeFileSync(join(vectors, 'p.json'), JSON.stringify({
  id: 'p',
  request: { model: 'recorded', temperature: 0, max_tokens: 4, logprobs: true, top_logprobs: 20, messages: [{ role: 'user', content: '2048 divided by 128' }] },
  steps: [{ token: { text: '16' }, logprob: -0.5, top_logprobs: [
    { token: { text: '16' }, logprob: -0.5 }, { token: { text: '17' }, logprob: -2 }, { token: { text: 'x' }, logprob: -9999 }] }],
}));

const good = await evaluate('', '--at-least', '1', '--vectors', vectors, '--same-checkpoint');
expect(good.code === 0, `the solver: exit ${good.code}\n${good.text}`);
const tasks = good.report.tasks;
expect(good.report.model === 'solver', 'the report names the model');
for (const [name, { right, total, misses }] of Object.entries(tasks)) {
  expect(right === total && total > 0, `${name}: ${right} of ${total} ${JSON.stringify(misses)}`);
}
expect(Object.keys(tasks['context.needle'].cells).join() === '200@0.00,200@0.25,200@0.50,200@0.75,200@0.95,600@0.00,600@0.25,600@0.50,600@0.75,600@0.95',
  `cells by length and depth: ${Object.keys(tasks['context.needle'].cells)}`);
expect(good.lengths.length === 10 && good.lengths.every((n, i) => n >= (i < 5 ? 194 : 582)), `real lengths: ${good.lengths}`);
expect(tasks['skills.tools'].total === 20, `tool scenarios: ${tasks['skills.tools'].total}`);
expect(tasks.vectors.cells.steps_compared === 1 && Math.abs(tasks.vectors.cells.mean_logprob_distance - 0.25) < 1e-9 &&
  Math.abs(tasks.vectors.cells.perplexity_of_official_tokens - Math.exp(0.25)) < 1e-9 && tasks.vectors.cells.top_5_agreement === 1,
  `vectors: ${JSON.stringify(tasks.vectors)}`);

// fault -> the share of right answers that each task may have left; tasks not named stay perfect.
const faults = {
  forgets: { 'context.needle': 0, 'context.multi_needle': 0, 'context.multi_value': 0, 'context.variables': 0 },
  forgets_the_start: { 'context.needle': 0.8 },
  never_calls: { 'skills.tools': 0.15 },
  wrong_argument: { 'skills.tools': 0.9 },
  one_call_only: { 'skills.tools': 0.9 },
  json_extra_key: { 'skills.json': 0 },
  json_wrong_value: { 'skills.json': 0.5 },
  off_by_one: { 'skills.arithmetic': 0 },
  other_token: { vectors: 0 },
};
for (const [fault, shares] of Object.entries(faults)) {
  const { code, report } = await evaluate(fault, '--at-least', '0.95', '--vectors', vectors, '--same-checkpoint');
  expect(code === 1, `${fault}: exit ${code}`);
  for (const [name, { right, total, misses }] of Object.entries(report.tasks)) {
    expect(Math.abs(right - (shares[name] ?? 1) * total) < 1e-9, `${fault}: ${name} ${right} of ${total} ${JSON.stringify(misses.slice(0, 2))}`);
    expect(right === total || (misses[0].question && misses[0].expected && 'got' in misses[0]), `${fault}: a miss shows what was asked and got`);
  }
}
expect((await evaluate('json_extra_key', '--only', 'skills.json')).report.tasks['skills.json'].cells.obey_the_schema[0] === 0, 'schema breaches are counted');
const list = (await evaluate('other_list', '--only', 'vectors', '--vectors', vectors, '--same-checkpoint')).report.tasks.vectors;
expect(list.right === 1 && list.cells.top_5_agreement === 0.5, `top-k agreement: ${JSON.stringify(list)}`);

const named = await evaluate('', '--only', 'vectors', '--vectors', vectors);
expect(named.code === 0 && named.text.includes('recorded from recorded, this server runs solver'), `other checkpoint: ${named.text}`);
const none = await evaluate('', '--only', 'vectors');
expect(none.text.includes('no --vectors FOLDER given'), `no vectors: ${none.text}`);
const breaks = await evaluate('breaks', '--only', 'context.needle');
expect(breaks.code === 1 && breaks.text.includes('failed: ') && breaks.text.includes('500'), `a broken server: ${breaks.code} ${breaks.text}`);
const uncounted = await evaluate('no_tokenize', '--only', 'context.needle');
expect(uncounted.code === 1 && uncounted.text.includes('/tokenize'), `no /tokenize: ${uncounted.text}`);
expect((await evaluate('', '--only', 'nothing')).code === 2, 'an unknown task name is exit 2');
const closed = new EvalServer();
const url = await closed.listen();
closed.close();
const dead = await start(url);
expect(dead.code === 3 && dead.text.includes('connecting failed'), `nobody answers: ${dead.code} ${dead.text}`);
expect((await start('nowhere')).code === 2, 'a wrong address is exit 2');

rmSync(folder, { recursive: true });
console.log(failed === 0 ? 'all passed' : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

// Runs `tandem verify` against the perfect server (all green) and against every fault (exactly the
// gate that names it is red). Usage: node run_matrix.mjs TANDEM [--docs FILE | --write-docs FILE]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { faults } from './faults.mjs';
import { ScriptedServer } from './scripted_server.mjs';

const [tandem, docsMode, docsFile] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'verify-'));

async function verify(fault) {
  const server = new ScriptedServer(fault);
  const url = await server.listen();
  const file = join(folder, `${fault || 'perfect'}.json`);
  const child = spawn(
    tandem,
    ['verify', url, '--model', 'scripted', '--json', file, '--prefix-tokens', '4700', '--turns', '3', '--recall', '300,600', '--timeout-ms', '20000'],
    { stdio: 'ignore' },
  );
  const code = await new Promise((resolve) => child.on('exit', resolve));
  server.close();
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const red = Object.entries(report.gates).filter(([, gate]) => gate.status === 'FAIL').map(([name]) => name);
  return { code, red, report };
}

function page() {
  const rows = faults.map(({ name, gate }) => `| ${name} | ${gate} |`).join('\n');
  return `# What \`tandem verify\` catches

\`tandem verify URL\` runs against any OpenAI-compatible server and exits 0 only if every required gate passes.
\`tandem verify --list\` names the gates. Each of the ${faults.length} faults below is built into a scripted server, and the
test \`verify_matrix\` requires that exactly the named gate turns red for it, and that the server without a fault is all
green. The table is written by \`node tests/verify/run_matrix.mjs TANDEM --write-docs docs/VERIFIER.md\`.

| fault | gate that names it |
|---|---|
${rows}
`;
}

let failed = 0;
const complain = (text) => {
  ++failed;
  console.log(text);
};

const perfect = await verify('');
if (perfect.red.length > 0 || perfect.code !== 0) {
  complain(`perfect server: red gates ${perfect.red.join(', ')}, exit ${perfect.code}`);
  for (const gate of perfect.red) {
    const { reason, assertions } = perfect.report.gates[gate];
    console.log(gate, reason, JSON.stringify(assertions.filter((a) => !a.ok), null, 1));
  }
}

const queue = [...faults];
async function worker() {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const { code, red } = await verify(next.name);
    const required = next.gate !== 'recall';
    if (red.join() !== next.gate || (code === 0) === required) {
      complain(`${next.name}: expected ${next.gate}, red: ${red.join(', ') || 'none'}, exit ${code}`);
    }
  }
}
await Promise.all(Array.from({ length: 6 }, worker));

if (docsMode === '--write-docs') writeFileSync(docsFile, page());
if (docsMode === '--docs' && readFileSync(docsFile, 'utf8') !== page()) {
  complain(`${docsFile} does not match tests/verify/faults.mjs; write it again with --write-docs`);
}
rmSync(folder, { recursive: true });
console.log(`${faults.length + 1 - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

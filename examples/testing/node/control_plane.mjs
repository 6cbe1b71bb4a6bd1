// Starts `etcd` and `kube-apiserver` of the folder in KUBEBUILDER_ASSETS, as envtest does for Go. The flags are
// kube-apiserver's own, and so the folder may hold upstream's programs as well; only --testing is Pilothouse's.
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getSecurely } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';

export class ControlPlane {
  #folder = mkdtempSync(join(tmpdir(), 'boats-'));
  #token = randomUUID();
  #programs = [];

  static async start(...flags) {
    const plane = new ControlPlane();
    try {
      await plane.#startEtcd();
      await plane.#startServer(flags);
    } catch (error) {
      await plane.stop();
      throw error;
    }
    return plane;
  }

  async stop() {
    for (const { process, ended } of this.#programs.reverse()) {
      process.kill('SIGTERM');
      await ended;
    }
    rmSync(this.#folder, { recursive: true });
  }

  kubeConfig() {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'test', server: this.url, caFile: join(this.#folder, 'apiserver.crt') }],
      users: [{ name: 'admin', token: this.#token }],
      contexts: [{ name: 'test', cluster: 'test', user: 'admin' }],
      currentContext: 'test',
    });
    return config;
  }

  async #startEtcd() {
    this.etcd = `http://127.0.0.1:${await freePort()}`;
    const peers = `http://127.0.0.1:${await freePort()}`;
    const urls = [`--listen-client-urls=${this.etcd}`, `--advertise-client-urls=${this.etcd}`];
    const program = this.#run('etcd', [...urls, `--listen-peer-urls=${peers}`, `--data-dir=${this.#folder}/etcd`]);
    await healthy(program, () => get(`${this.etcd}/health`));
  }

  async #startServer(flags) {
    const port = await freePort();
    this.url = `https://127.0.0.1:${port}`;
    const program = this.#run('kube-apiserver', [
      `--etcd-servers=${this.etcd}`,
      `--secure-port=${port}`,
      '--bind-address=127.0.0.1',
      `--cert-dir=${this.#folder}`,
      `--token-auth-file=${this.#write('tokens.csv', `${this.#token},admin,admin,system:masters\n`)}`,
      ...this.#serviceAccountFlags(),
      '--authorization-mode=RBAC',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--disable-admission-plugins=ServiceAccount',
      ...flags,
    ]);
    await healthy(program, () => getSecurely(`${this.url}/readyz`, { rejectUnauthorized: false, agent: false }));
  }

  #serviceAccountFlags() {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = this.#write('sa.key', privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return [
      '--service-account-issuer=https://boats.test',
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
    ];
  }

  #run(name, args) {
    const log = join(this.#folder, `${name}.log`);
    const output = openSync(log, 'w');
    const process = spawn(join(assets(), name), args, { stdio: ['ignore', output, output] });
    const program = { name, log, process, ended: once(process, 'close') };
    this.#programs.push(program);
    return program;
  }

  #write(name, content) {
    const path = join(this.#folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }
}

function assets() {
  const folder = process.env.KUBEBUILDER_ASSETS;
  if (!folder) throw new Error('KUBEBUILDER_ASSETS is not set: export KUBEBUILDER_ASSETS=$(pilothouse envtest path)');
  return folder;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function healthy(program, ask) {
  while ((await statusOf(ask)) !== 200) {
    if (program.process.exitCode !== null) throw new Error(`${program.name}: ${readFileSync(program.log, 'utf8')}`);
    await sleep(20);
  }
}

function statusOf(ask) {
  return new Promise((resolve) => {
    ask()
      .on('response', (response) => resolve(response.resume().statusCode))
      .on('error', () => resolve(0));
  });
}

import { execFile, spawnSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import {
  newSigningKey,
  publicKeyOf,
  signingKeyOf,
  signWebhook,
} from '../../src/domain/delivery/signature.ts';
import { fencedBlocks, readDocument } from '../support/documents.ts';
import { temporaryFolder } from '../support/spawn.ts';

/*
 * The code of docs/webhooks.md that checks signatures by a public key, in each of its languages: Standard Webhooks has no
 * library that verifies `v1a`.
 */
const languages = [
  {
    name: 'node',
    check: 'true',
    block: 'js',
    files: (code: string) => ({
      'main.mjs': `${code}
        import { readFileSync } from 'node:fs';
        for (const { body, headers, key } of JSON.parse(readFileSync('cases.json', 'utf8')))
          console.log(verifyPublicly(Buffer.from(body), headers, key));`,
    }),
    run: [process.execPath, 'main.mjs'],
  },
  {
    name: 'python',
    check: 'python3 -c "import cryptography"',
    block: 'python',
    files: (code: string) => ({
      'main.py': `${code}
import json
for case in json.load(open("cases.json")):
    print(str(verify_publicly(case["body"].encode(), case["headers"], case["key"])).lower())
`,
    }),
    run: ['python3', 'main.py'],
  },
  {
    name: 'go',
    check: 'command -v go',
    block: 'go',
    files: (code: string) => ({
      'go.mod': 'module example.com/verify\n\ngo 1.19\n',
      'main.go': `package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

${code}
func main() {
	content, _ := os.ReadFile("cases.json")
	var cases []struct {
		Body    string
		Headers map[string]string
		Key     string
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		panic(err)
	}
	for _, each := range cases {
		header := http.Header{}
		for name, value := range each.Headers {
			header.Set(name, value)
		}
		fmt.Println(verifyPublicly([]byte(each.Body), header, each.Key))
	}
}
`,
    }),
    run: ['go', 'run', '.'],
  },
];

const env = { ...process.env, PATH: `/usr/bin:${process.env.PATH}`, GOFLAGS: '-mod=mod', GOPROXY: 'off' };
const wanted = process.env.CLIENTS?.split(',');
const chosen = languages.filter(({ name }) => wanted?.includes(name) ?? true);
const missing = chosen.filter(({ check }) => spawnSync('sh', ['-c', check], { env }).status !== 0);
const installed = chosen.filter((language) => !missing.includes(language));
if (missing.length > 0) console.warn(`Left out: ${missing.map(({ name }) => name).join(', ')}`);

it('misses no tool in CI', () => {
  expect(process.env.CI === 'true' ? missing.map(({ name }) => name) : []).toEqual([]);
});

it.each(installed)(
  '$name verifies v1a, and refuses what is changed, old or by another key',
  async (language) => {
    using folder = temporaryFolder();
    const code = fencedBlocks(readDocument('docs/webhooks.md'))
      .filter((block) => block.language === language.block)
      .findLast(({ text }) => /verify_?publicly/i.test(text))?.text;
    const text = newSigningKey();
    const key = publicKeyOf(text);
    const body = '{"event":"submission.created","data":{"answers":{"name":"Jürg 👍"}}}';
    const secret = 'a secret';
    const signed = (at: number) =>
      signWebhook({ id: 'evt_1', body, at, secret, signingKey: signingKeyOf(text) });
    const headers = signed(Date.now());
    const onlyV1 = signWebhook({ id: 'evt_1', body, at: Date.now(), secret });
    // As another implementation signs: that of the specification's text.
    const other = generateKeyPairSync('ed25519');
    const time = String(Math.floor(Date.now() / 1000));
    const theirs = sign(null, Buffer.from(`evt_2.${time}.${body}`), other.privateKey).toString('base64');
    const { x = '' } = other.publicKey.export({ format: 'jwk' });
    const theirKey = `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;
    const cases = [
      { expected: true, body, headers, key },
      {
        expected: true,
        body,
        headers: {
          'webhook-id': 'evt_2',
          'webhook-timestamp': time,
          'webhook-signature': `v1,AAAA v1a,${theirs}`,
        },
        key: theirKey,
      },
      { expected: false, body: `${body} `, headers, key },
      { expected: false, body, headers: { ...headers, 'webhook-id': 'evt_2' }, key },
      { expected: false, body, headers, key: theirKey },
      { expected: false, body, headers: signed(Date.now() - 301_000), key },
      { expected: false, body, headers: signed(Date.now() + 3_600_000), key },
      { expected: false, body, headers: onlyV1, key },
    ];
    const files = { ...language.files(code ?? ''), 'cases.json': JSON.stringify(cases) };
    mkdirSync(folder.path, { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder.path, name), content);
    const [command = '', ...args] = language.run;

    const { stdout } = await promisify(execFile)(command, args, { cwd: folder.path, env });

    expect(stdout.trim().split('\n')).toEqual(cases.map(({ expected }) => String(expected)));
  },
);

import { join } from 'node:path';
import { type S3Location, s3UploadStore } from './s3-upload-store.ts';
import { localUploadStore, type UploadStore } from './upload-store.ts';

/** The store of uploads that the settings name: an S3-compatible one, or else a folder in the data folder. */
export function openUploadStore({ uploads, dataDir }: UploadSettings, now: () => number): UploadStore {
  return uploads === undefined ? localUploadStore(join(dataDir, 'uploads')) : s3UploadStore(uploads, now);
}

type UploadSettings = { uploads?: S3Location | undefined; dataDir: string };

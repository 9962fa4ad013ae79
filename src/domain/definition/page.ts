import { z } from 'zod';

/** The shape of a step's title and description. */
export const pageSchema = z
  .strictObject({
    title: z.string().min(1).max(200).exactOptional().describe('Shown above the fields of the step.'),
    description: z.string().min(1).max(2000).exactOptional().describe('Shown below the title.'),
  })
  .meta({ id: 'Page', description: 'A step of a multi-page form.' });

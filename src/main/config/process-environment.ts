// What a process reads of its environment during its life, and adds to it.

/** Whether npm runs us: then it is our parent, and we end when it ends. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined;

/** Variables that a supervisor sends when a process begins; the process reads its configuration after that. */
export function addVariables(variables: Readonly<Record<string, string>>): void {
  Object.assign(process.env, variables);
}

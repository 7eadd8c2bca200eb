package org.jspecify.annotations;

import java.lang.annotation.ElementType;
import java.lang.annotation.Target;

@Target({ElementType.TYPE_USE, ElementType.TYPE, ElementType.PACKAGE})
public @interface NonNull {}
